#!/bin/sh
# Recovers as the server does when it starts, and prints the rows. In its bootstrap mode, which opens no socket and
# ends with its input, it gives them out by way of a file only.
set -eu
rows=$REFIT_MOUNT/data/rows
rm -f "$rows"
mariadbd --defaults-file="$REFIT_MOUNT/my.cnf" --bootstrap >&2 <<END
SELECT id FROM refit.t INTO OUTFILE '$rows';
END
cat "$rows"
