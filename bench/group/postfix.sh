#!/bin/sh
# usage: postfix.sh RECIPE MAILS, in the directory that holds its queue
# The Postfix of a recipe takes so many mails; its daemons inherit the library that lies beneath this script.
set -eu
export REFIT_RECIPE="$1" REFIT_DIR="$PWD/postfix" REFIT_PORT_SMTP=12525 REFIT_PORT_SINK=12526
preload=${LD_PRELOAD-}
unset LD_PRELOAD
REFIT_TMPFS=$(mktemp -d /dev/shm/refit-bench-postfix-XXXXXX)
export REFIT_TMPFS
trap 'rm -rf "$REFIT_TMPFS"' EXIT
mkdir "$REFIT_DIR"
cd "$REFIT_DIR"
sh "$REFIT_RECIPE/setup.sh"
# Postfix's master hands down only what its configuration names.
echo 'import_environment = MAIL_CONFIG MAIL_LOGTAG TZ LANG=C LD_PRELOAD REFIT_GROUP REFIT_GROUP_HOLD_US' >>conf/main.cf
LD_PRELOAD=$preload sh "$REFIT_RECIPE/start.sh" >/dev/null 2>&1 &
trap 'sh "$REFIT_RECIPE/stop.sh"; wait; rm -rf "$REFIT_TMPFS"' EXIT
listens=$(printf ' 0100007F:%04X 00000000:0000 0A ' "$REFIT_PORT_SMTP")
until grep -q "$listens" /proc/net/tcp; do
	kill -0 $!
	sleep 0.05
done
sh "$REFIT_RECIPE/load.sh" 100 warmup.test >/dev/null
sh "$REFIT_RECIPE/load.sh" "$2" load.test
