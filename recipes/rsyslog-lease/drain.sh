#!/bin/sh
# Waits until rsyslog has written what is still in its queue: a last client's lines are the last ones.
set -eu
./ask "$REFIT_PORT_LEASE" drain 1 >/dev/null
tail -n +1 -f log/messages | grep -q ' offer of [0-9.]* to drain 1$'
