#!/bin/sh
# usage: start.sh memory|direct. With the queue that rsyslog has by default a line is acknowledged when it is in
# memory; without one, the receiver itself writes and syncs it before it answers.
set -eu
case $1 in
memory) queue= ;;
direct) queue='main_queue(queue.type="Direct")' ;;
esac
sed "s|@DIR@|$REFIT_MOUNT|; s|@QUEUE@|$queue|" rsyslog.conf >"$REFIT_MOUNT/rsyslog.conf"
exec rsyslogd -n -f "$REFIT_MOUNT/rsyslog.conf" -i NONE
