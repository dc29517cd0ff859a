#!/bin/sh
# Recovers as the server does when it starts, and prints the rows. In its bootstrap mode, which opens no socket and
# ends with its input, it gives them out by way of a file only.
set -eu
rows=$REFIT_MOUNT/data/rows log=$REFIT_MOUNT/check.log
rm -f "$rows"
mariadbd --defaults-file="$REFIT_MOUNT/my.cnf" --bootstrap >"$log" 2>&1 <<END || {
SELECT id FROM refit.t INTO OUTFILE '$rows';
END
	# The first error is the cause, the last one that it gives up.
	grep --max-count=1 ERROR "$log" >&2
	exit 1
}
cat "$rows"
