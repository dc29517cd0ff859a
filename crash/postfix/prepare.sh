#!/bin/sh
# A Postfix of its own: configuration, queue, data and mailboxes on the recorded disk.
set -eu
cd "$REFIT_MOUNT"
mkdir conf queue data mail
chown postfix data
chown nobody mail
for file in main.cf master.cf; do
	sed "s|@DIR@|$REFIT_MOUNT|" "$OLDPWD/$file" >"conf/$file"
done
# Makes the queue's directories.
postfix -c "$REFIT_MOUNT/conf" check
# A main.cf that is younger than two seconds may still be being written: Postfix would wait.
touch -d '1 minute ago' conf/main.cf
