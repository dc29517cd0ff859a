#!/bin/sh
# Every request was answered, none wrongly as far as ab can see (it compares lengths), and one page begins as it has to.
# At a rate refit asks in place of ab, and lets no answer but a whole page with status 200 pass.
set -eu
fail() {
    echo "$*" >&2
    exit 1
}
if [ -z "${REFIT_LOAD_RATE-}" ]; then
    grep -q "^Complete requests: *$REFIT_OPERATIONS\$" ab.out || fail "ab: $(grep '^Complete requests' ab.out)"
    grep -q '^Failed requests: *0$' ab.out || fail "ab: $(grep '^Failed requests' ab.out)"
    ! grep '^Non-2xx responses' ab.out >&2 || exit 1
fi
page=$(curl -sS --fail --noproxy '*' "http://127.0.0.1:$REFIT_PORT_HTTP/check") || fail "the server does not answer"
[ ${#page} -ge 16000 ] || fail "the page has ${#page} bytes"
case $page in 'row 0:  of /check'*) ;; *) fail "the page begins: $(echo "$page" | head -n 1)" ;; esac
echo "$REFIT_OPERATIONS requests answered, none failed"
