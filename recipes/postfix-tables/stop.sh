#!/bin/sh
# Ends Postfix, with the signal that `postfix stop` sends: that one waits in whole seconds, and for the master only,
# which its daemons outlive by a moment. Then the server of the script, which nobody asks any more.
set -eu
queue=$(postconf -c "$REFIT_DIR/conf" -h queue_directory)

# Daemons work in the queue's directory, whatever else they gave up.
daemons() { find /proc/[0-9]*/cwd -maxdepth 0 -lname "$queue*" 2>/dev/null || :; }

kill "$(sed 1q "$queue/pid/master.pid")"
while [ -n "$(daemons)" ]; do sleep 0.01; done
if [ -e mapd.pid ]; then kill "$(cat mapd.pid)"; fi
