#!/bin/sh
# How the server reads in this variant: the steps of the plan of each kind of statement.
set -eu
. "$REFIT_RECIPE/server.sh"
copy <"$REFIT_RECIPE/plans.sql" | awk -F '\t' '
	function done() { if (plan != "") print plan "\t" steps }
	/^refit:plan of q[0-9]+$/ { done(); plan = substr($0, 7); steps = ""; next }
	{ steps = steps (steps == "" ? "" : "; ") $3 ": " ($6 == "NULL" ? ($4 == "ALL" ? "all rows" : $4) : $4 " by " $6) }
	$10 ~ /filesort/ { steps = steps ", sorted" }
	END { done() }'
