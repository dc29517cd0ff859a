#!/bin/sh
# Unpacks the package into a root with a dpkg database of its own. It has no scripts, so nobody needs to be root.
set -eu
. ./dpkg.conf
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
: >"$root/var/lib/dpkg/status"
exec dpkg --root="$root" --log="$REFIT_DIR/dpkg.log" --force-not-root "$io" --unpack many.deb
