#!/bin/sh
# Both lines about every client are in the log, once and in their order. That it got its answer, `ask` has seen to.
set -eu
awk -v count="$REFIT_OPERATIONS" '
	function wrong(what) { if (!failed++) print what >"/dev/stderr" }
	$3 != "lease:" || $(NF - 1) != "load" { next }
	$4 == "discover" {
		if (discovers[$NF]++) wrong("client " $NF " asked twice")
		lines++
		next
	}
	$4 == "offer" {
		if (!($NF in discovers)) wrong("client " $NF " was answered before it asked")
		address = "10." int($NF / 65536) % 256 "." int($NF / 256) % 256 "." $NF % 256
		if ($6 != address) wrong("client " $NF " got " $6)
		if (offers[$NF]++) wrong("client " $NF " was answered twice")
		lines++
		next
	}
	{ wrong("damaged: " $0) }
	END {
		for (n = 1; n <= count; n++) {
			if (!(n in discovers)) wrong("the request of client " n " is not in the log")
			if (!(n in offers)) wrong("the answer to client " n " is not in the log")
		}
		if (lines != 2 * count) wrong(lines " lines instead of " 2 * count)
		if (failed) exit 1
		print count " clients answered, " lines " lines in the log"
	}' log/messages
