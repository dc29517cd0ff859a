#!/bin/sh
# Starts the server of the script, where there is one, and Postfix in the foreground.
set -eu

if [ -e use-mapd ]; then
	mkfifo ready
	# Not Postfix's child: its master does not expect any that it did not start.
	(./mapd "$REFIT_PORT_MAPD" users users.rb >ready & echo $! >mapd.pid)
	# No line: it has ended, and its log has the reason.
	read -r _ <ready || exit 1
fi

# A main.cf that is younger than two seconds may still be being written: Postfix would wait.
touch -d '1 minute ago' conf/main.cf

exec postfix -c "$REFIT_DIR/conf" start-fg
