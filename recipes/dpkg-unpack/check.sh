#!/bin/sh
# dpkg calls the package unpacked, and every file is there with its content.
set -eu
. ./dpkg.conf
status=$(dpkg-query --admindir="$root/var/lib/dpkg" --show --showformat='${db:Status-Status}' refit-many)
if [ "$status" != unpacked ]; then
	echo "the package is $status, not unpacked" >&2
	exit 1
fi
# The marks of what dpkg had not finished, such as usr/….dpkg-new, are files too.
(cd "$root" && find usr -type f -exec md5sum {} + | sort) | diff expected - >&2
count=$(wc -l <expected)
if [ "$count" -ne "$REFIT_OPERATIONS" ]; then
	echo "the package had $count files, not $REFIT_OPERATIONS" >&2
	exit 1
fi
echo "$count files unpacked"
