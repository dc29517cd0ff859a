#!/bin/sh
# A lease daemon and an rsyslogd of its own in $REFIT_DIR. The system's own is neither asked nor changed.
set -eu
umask 022

# What rsyslogd writes, and its socket. As root both daemons run as nobody, to whom nothing else belongs here.
mkdir -m 700 log
mkdir log/work
[ "$(id -u)" != 0 ] || chown nobody log log/work

sed "s|@DIR@|$REFIT_DIR|" "$REFIT_RECIPE/rsyslog.conf" >rsyslog.conf
gcc -O2 -Wall -Wextra -o lease "$REFIT_RECIPE/lease.c"
gcc -O2 -Wall -Wextra -o ask "$REFIT_RECIPE/ask.c"

# The /dev that the lease daemon will see.
mkdir dev dev/shm
touch dev/null dev/urandom
ln -s "$REFIT_DIR/log/socket" dev/log
