#!/bin/sh
# Starts Postfix in the foreground.
set -eu

# A main.cf that is younger than two seconds may still be being written: Postfix would wait.
touch -d '1 minute ago' conf/main.cf

exec postfix -c "$REFIT_DIR/conf" start-fg
