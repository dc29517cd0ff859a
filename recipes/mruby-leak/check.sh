#!/bin/sh
# Every request was answered in full, and memcheck's verdict is the one that this way to leak deserves.
set -eu
fail() {
    echo "$*" >&2
    exit 1
}

read -r leak <leak
expected="$REFIT_OPERATIONS requests served, $((REFIT_OPERATIONS * 220)) bytes of answers"
grep -q "^$expected, " points || fail "the last answer was: $(tail -n 1 points); not: $expected"

case $leak in
lost)
    # One in hundreds may be missing: a pointer that lies about in a register or on the stack is a pointer to memcheck.
    blocks=$(sed -n 's/^==[0-9]*== *definitely lost: .* in \([0-9]*\) blocks$/\1/p' memcheck.lost)
    [ "${blocks:=0}" -ge 195 ] && [ "$blocks" -le 200 ] || fail "memcheck: $blocks of 200 blocks definitely lost"
    verdict='195 blocks or more definitely lost'
    ;;
kept)
    verdict='All heap blocks were freed -- no leaks are possible'
    grep -q -e "$verdict" memcheck.kept || fail "memcheck: $(grep -A 4 'LEAK SUMMARY' memcheck.kept)"
    ;;
*) fail "no way to leak: $leak" ;;
esac
echo "$expected"
echo "memcheck, 200 requests: $verdict"
