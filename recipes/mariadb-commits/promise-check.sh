#!/bin/sh
# For the promise: recovers as the server does when it starts, and prints the rows. In its bootstrap mode, which opens no
# socket and ends with its input, it can only write them to a file.
set -eu
rows=$REFIT_DIR/data/rows log=$REFIT_DIR/check.log
rm -f "$rows"
mariadbd --defaults-file="$REFIT_DIR/my.cnf" --user=mysql --log-error="$log" --bootstrap 2>>"$log" <<END || {
SELECT id FROM promise.t INTO OUTFILE '$rows';
END
	# The first error is the cause, the last one that it gives up.
	grep --max-count=1 ERROR "$log" >&2
	exit 1
}
cat "$rows"
