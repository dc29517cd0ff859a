#!/bin/sh
# Starts Postfix in the foreground: as root of a user namespace whose other accounts are those of the recipe alone, where
# setup.sh gave it the queue; otherwise as root.
set -eu

start() { exec "$@" postfix -c "$REFIT_DIR/conf" start-fg; }

if [ "${1:-}" = inside ]; then
	until grep -q . /proc/self/gid_map; do sleep 0.01; done
	start setpriv --reuid=0 --regid=0 --clear-groups
fi

# A main.cf that is younger than two seconds may still be being written: Postfix would wait.
touch -d '1 minute ago' conf/main.cf

[ "$(stat -c %u queue)" != 0 ] || start

# The numbers of a namespace are written from outside, once and at once.
number() { printf '%s %s 1\n' "$1" "${2:-$1}"; }
write_numbers() {
	until [ "$(readlink "/proc/$1/ns/user")" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.01; done
	users=$(number 0 "$(id -u daemon)" && number "$(id -u postfix)" && number "$(id -u nobody)")
	groups=$(number 0 "$(id -g daemon)" && number "$(id -g postfix)" && number "$(id -g nobody)" &&
		number "$(stat -c %g queue/maildrop)")
	printf '%s\n' "$users" >"/proc/$1/uid_map"
	printf '%s\n' "$groups" >"/proc/$1/gid_map"
}
(write_numbers $$ &)
exec unshare --user --keep-caps sh "$0" inside
