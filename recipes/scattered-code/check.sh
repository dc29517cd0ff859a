#!/bin/sh
# Every function ran as often as it was called: 8 sizes, 8 passes each, of so many calls or a little more.
set -eu
awk -v calls="$REFIT_OPERATIONS" '
	/ calls and more/ {
		split("20 50 100 200 400 1000 2000 4000", sizes)
		for (i = 1; i <= 8; i++) expected += 8 * sizes[i] * int((calls + sizes[i] - 1) / sizes[i])
		if ($1 != calls || $(NF - 2) != expected) { print "wrong: " $0 ", not " expected >"/dev/stderr"; exit 1 }
		print calls " calls and more, " expected " ran"
		found = 1
	}
	END { if (!found) exit 1 }' calls.out
