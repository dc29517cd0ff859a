#!/bin/sh
# usage: unshare -m slow_disk.sh SERVER FILESYSTEM MIB FLUSH_US DURABLE, in an empty directory
# A file system on a slow disk, mounted on ./mounted in this mount namespace; says "ready", and ends with its stdin.
# Killed, it leaves nothing: the mounts go with the namespace, and the loop device with its last mount.
set -eu
mount --make-rprivate /
mkdir served mounted
"$1" served "$3" "$4" "$5" &
until mountpoint -q served; do
	kill -0 $!
	sleep 0.01
done
loop=$(losetup --find --show --direct-io=on served/disk)
trap 'losetup -d "$loop"' EXIT
"mkfs.$2" -q "$loop" >&2
mount "$loop" mounted
losetup -d "$loop" # as soon as nobody has it any more; then its number may be another's
trap - EXIT
chmod 777 mounted
echo ready
cat >/dev/null
umount mounted
until umount served 2>/dev/null; do
	mountpoint -q served || break
	sleep 0.01 # the loop device goes a moment after its mount
done
