#!/bin/sh
# Every line is in the file, whole and in order.
set -eu
. ./loop.conf
awk -v count="$REFIT_OPERATIONS" '
	$0 != sprintf("line %07d", NR) { print "line " NR " of the file is: " $0 >"/dev/stderr"; bad = 1; exit }
	END {
		if (bad) exit 1
		if (NR != count) { print NR " lines, not " count >"/dev/stderr"; exit 1 }
		print NR " lines in order"
	}' "$file"
