#!/bin/sh
# An rsyslogd of its own in $REFIT_DIR: configuration, socket and log. The system's own is neither asked nor changed.
set -eu
mkdir work
sed "s|@DIR@|$REFIT_DIR|" "$REFIT_RECIPE/rsyslog.conf" >rsyslog.conf
gcc -O2 -Wall -Wextra -o lines "$REFIT_RECIPE/lines.c"
