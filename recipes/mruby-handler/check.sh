#!/bin/sh
# Every request was answered, none wrongly as far as ab can see (it compares lengths), by one process from the first to
# the last, and one body is right to the byte.
set -eu
fail() {
    echo "$*" >&2
    exit 1
}

read -r served failed <served
[ "$served" = "$REFIT_OPERATIONS" ] || fail "ab has $served of $REFIT_OPERATIONS answers"
[ "$failed" = 0 ] || fail "in $failed runs of ab a request failed; the last one: $(cat ab.out)"
[ "$(sed 's/.*process \([0-9]*\):.*/\1/' points | sort -u | wc -l)" = 1 ] || fail "more than one process: $(cat points)"

for i in $(seq 0 19); do
    echo "key $i: value $i of the request to /check"
done >expected
curl -sS --fail --noproxy '*' -o body "http://127.0.0.1:$REFIT_PORT_HTTP/check" || fail "the server does not answer"
cmp -s expected body || fail "the body is wrong: $(head -n 3 body)"
echo "$REFIT_OPERATIONS requests answered, none failed; the body is right"
