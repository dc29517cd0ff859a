#!/bin/sh
# Every line of the load is in the log, once and whole.
set -eu
awk -v count="$REFIT_OPERATIONS" '
	function wrong(what) { if (!failed++) print what >"/dev/stderr" }
	$3 !~ /^load\[[0-9]+\]:$/ { next }
	$4 != "line" || $0 !~ / of [0-9]+, which is about as long as they are$/ { wrong("damaged: " $0) }
	{
		if (seen[$5]++) wrong("line " $5 " is there twice")
		lines++
	}
	END {
		for (n = 1; n <= count; n++) if (!(n in seen)) wrong("line " n " is missing")
		if (lines != count) wrong(lines " lines instead of " count)
		if (failed) exit 1
		print count " lines in the log"
	}' messages
