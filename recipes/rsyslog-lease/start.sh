#!/bin/sh
# Starts rsyslogd and the lease daemon, whose real syslog(3) has to reach this rsyslogd: it knows no other place than
# /dev/log. So both live in a mount namespace of their own with a /dev of their own; the system's is not touched.
set -eu

case "${1:-}" in
inside) ;;
private)
	# In a chroot the root is no mount point, and so cannot be made private: a copy of everything becomes the root. It
	# is mounted upon /proc, from which no mount reaches the system's mounts either.
	if ! mount --make-rprivate / 2>/dev/null; then
		mount --make-private /proc
		mount --rbind / /proc
		mount --make-rprivate /proc
		# shellcheck disable=SC2016 # they are the inner shell's
		exec chroot /proc sh -c 'cd "$REFIT_DIR" && exec sh "$0" inside' "$0"
	fi
	;;
*)
	user=
	[ "$(id -u)" = 0 ] || user=--map-root-user
	exec unshare --mount --propagation unchanged $user sh "$0" private
	;;
esac

for node in null urandom; do mount --bind "/dev/$node" "dev/$node"; done
# For refit, too, which keeps its counters there where it may not use /run.
mount --rbind /dev/shm dev/shm
mount --rbind dev /dev

# Root has mounted; its daemons are nobody, and stay so.
as=
[ "$(stat -c %u log)" = 0 ] || as="setpriv --reuid=nobody --regid=$(id -g nobody) --clear-groups --no-new-privs"

pids=
trap 'kill $pids 2>/dev/null || :; wait' EXIT
trap 'exit 0' TERM
$as rsyslogd -n -f rsyslog.conf -i NONE &
pids=$!
until [ -S log/socket ]; do
	kill -0 "$pids"
	sleep 0.01
done
$as ./lease "$REFIT_PORT_LEASE" &
pids="$pids $!"
wait "$!"
