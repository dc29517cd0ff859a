#!/bin/sh
# Starts rsyslogd and the lease daemon, whose real syslog(3) has to reach this rsyslogd: it knows no other place than
# /dev/log. So both live in a mount namespace of their own with a /dev of their own; the system's is not touched.
set -eu

if [ "${1:-}" != inside ]; then
	user=
	[ "$(id -u)" = 0 ] || user=--map-root-user
	exec unshare --mount $user sh "$0" inside
fi

for node in null urandom; do mount --bind "/dev/$node" "dev/$node"; done
# For refit, too, which keeps its counters there where it may not use /run.
mount --rbind /dev/shm dev/shm
mount --rbind dev /dev

pids=
trap 'kill $pids 2>/dev/null || :; wait' EXIT
trap 'exit 0' TERM
rsyslogd -n -f rsyslog.conf -i NONE &
pids=$!
until [ -S socket ]; do
	kill -0 "$pids"
	sleep 0.01
done
./lease "$REFIT_PORT_LEASE" &
pids="$pids $!"
wait "$!"
