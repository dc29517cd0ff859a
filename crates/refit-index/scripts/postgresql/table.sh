#!/bin/sh
# How the server reads in this variant: the steps of the plan of each kind of statement.
set -eu
. "$REFIT_RECIPE/server.sh"
client -U copy -f "$REFIT_RECIPE/plans.sql" | awk '
	function done() { if (plan != "") print plan "\t" steps }
	/^plan of q[0-9]+$/ { done(); plan = $0; steps = ""; next }
	steps == "" { steps = $0; next }
	/->/ { sub(/^ *->  */, ""); steps = steps "; " $0 }
	END { done() }'
