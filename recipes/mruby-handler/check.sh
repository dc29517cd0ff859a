#!/bin/sh
# Every request was answered, none wrongly as far as ab can see (it compares lengths), and one body is right to the
# byte.
set -eu
fail() {
    echo "$*" >&2
    exit 1
}

grep -q "^Complete requests: *$REFIT_OPERATIONS\$" ab.out || fail "ab: $(grep '^Complete requests' ab.out)"
grep -q '^Failed requests: *0$' ab.out || fail "ab: $(grep '^Failed requests' ab.out)"
if grep -q '^Non-2xx responses' ab.out; then
    fail "ab: $(grep '^Non-2xx responses' ab.out)"
fi

for i in $(seq 0 19); do
    echo "key $i: value $i of the request to /check"
done >expected
curl -sS --fail --noproxy '*' -o body "http://127.0.0.1:$REFIT_PORT_HTTP/check" || fail "the server does not answer"
cmp -s expected body || fail "the body is wrong: $(head -n 3 body)"
echo "$REFIT_OPERATIONS requests answered, none failed; the body is right"
