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

verdict=$(sed -n 's/^==[0-9]*== *\(definitely lost: .*\|All heap blocks were freed.*\)/\1/p' "memcheck.$leak")
case $leak in
lost) grep -q 'definitely lost: 40,000 bytes in 200 blocks' "memcheck.$leak" || fail "memcheck: $verdict" ;;
kept) grep -q 'All heap blocks were freed' "memcheck.$leak" || fail "memcheck: $verdict" ;;
esac
echo "$expected"
echo "memcheck, 200 requests: $verdict"
