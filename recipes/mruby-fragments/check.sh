#!/bin/sh
# Every request was served, what lives stayed the same (within a tenth: the sessions' lengths vary), and memcheck finds
# nothing.
set -eu
fail() {
    echo "$*" >&2
    exit 1
}

live=$(awk '
    NR == 1 || $4 < low { low = $4 }
    NR == 1 || $4 > high { high = $4 }
    END { if (low > 0.9 * high) print $4; else print "from " low " to " high >"/dev/stderr" }' points)
[ -n "$live" ] || fail "what lives did not stay the same"

expected="$REFIT_OPERATIONS requests served, $live bytes live"
tail -n 1 points | grep -q "^$expected, " || fail "the last answer was: $(tail -n 1 points); not: $expected"
grep -q 'All heap blocks were freed' memcheck || fail "memcheck: $(grep -A 4 'LEAK SUMMARY' memcheck)"
echo "$expected"
echo "memcheck, 200 requests: all heap blocks were freed"
