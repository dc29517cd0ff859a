#!/bin/sh
# A MariaDB of its own in $REFIT_DIR, with the copy of the database. The copy belongs to a user who may do nothing else:
# what a database defines does not run as root.
set -eu
umask 077
. "$REFIT_RECIPE/server.sh"
sed "s|@DIR@|$REFIT_DIR|; s|@USER@|$(id -un)|" "$REFIT_RECIPE/my.cnf" >my.cnf
# The server knows one account by a user of the system (unix_socket), and that is the one that may do everything.
secret=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
printf '\n[client-copy]\nuser = copy\npassword = %s\n' "$secret" >>my.cnf
mariadb-install-db --defaults-file="$REFIT_DIR/my.cnf" --auth-root-authentication-method=socket \
	--auth-root-socket-user="$(id -un)" --skip-test-db >setup.log 2>&1 || { cat setup.log >&2; exit 1; }
# Nothing is measured yet: no syncs.
mariadbd --defaults-file="$REFIT_DIR/my.cnf" --log-error="$REFIT_DIR/setup.log" --innodb-flush-log-at-trx-commit=0 \
	--skip-innodb-doublewrite >>setup.log 2>&1 &
server=$!
until client -e 'SELECT 1' >/dev/null 2>&1; do
	kill -0 $server 2>/dev/null || { tail -n 3 setup.log >&2; exit 1; }
	sleep 0.1
done
status=0
sh "$REFIT_RECIPE/restore.sh" >&2 || status=$?
mariadb-admin --defaults-file="$REFIT_DIR/my.cnf" shutdown
wait $server || status=$?
exit $status
