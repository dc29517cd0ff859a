#!/bin/sh
# For the promise: recovers as the server does when it starts, and prints the rows, which it writes to a file. With a binary
# log it has to start for that, and ends itself; without one its bootstrap mode is enough, which opens no socket.
set -eu
rows=$REFIT_DIR/data/rows log=$REFIT_DIR/check.log
rm -f "$rows"
recovers() { mariadbd --defaults-file="$REFIT_DIR/my.cnf" --user=mysql --log-error="$log" "$@" 2>>"$log"; }
select="SELECT id FROM promise.t INTO OUTFILE '$rows';"
if grep -qE '^ *log[-_]bin' "$REFIT_DIR/my.cnf"; then
	printf '%s\nSHUTDOWN;\n' "$select" >"$REFIT_DIR/check.sql"
	recovers --init-file="$REFIT_DIR/check.sql"
else
	echo "$select" | recovers --bootstrap
fi || {
	# The first error is the cause, the last one that it gives up.
	grep --max-count=1 ERROR "$log" >&2
	exit 1
}
cat "$rows"
