#!/bin/sh
# Both servers are started in this zone; then the first $REFIT_OPERATIONS questions are asked.
set -eu
. "$REFIT_RECIPE/programs.sh"
. "$REFIT_RECIPE/ask.sh"
server= waiter=
trap 'for pid in $server $waiter; do kill -QUIT $pid; done 2>/dev/null' EXIT

# until COMMAND… succeeds, but no longer than 30 s, nor than the process $1 lives.
wait_for() {
	pid=$1 began=$(date +%s)
	shift
	until "$@" >/dev/null 2>&1; do
		if ! kill -0 "$pid" 2>/dev/null || [ $(($(date +%s) - began)) -gt 30 ]; then
			tail -n 3 mysql.log postgres.log >&2
			exit 1
		fi
	done
}

mariadbd --defaults-file="$REFIT_DIR/my.cnf" &
server=$!
initdb --no-sync --auth=peer --username="$PGUSER" --encoding=UTF8 --locale=C postgres >initdb.log 2>&1 || {
	cat initdb.log >&2
	exit 1
}
# The server takes the user who runs this script, and nobody else.
echo 'local all all peer map=own' >postgres/pg_hba.conf
echo "own \"$(id -un)\" $PGUSER" >postgres/pg_ident.conf
postgres -D postgres -c listen_addresses= -c "unix_socket_directories=$REFIT_DIR" 2>postgres.log &
waiter=$!
wait_for "$server" mariadb-admin --defaults-file="$REFIT_DIR/my.cnf" ping
wait_for "$waiter" grep 'ready to accept connections' postgres.log
mariadb --defaults-file="$REFIT_DIR/my.cnf" -e 'CREATE DATABASE test; USE test; CREATE TABLE t (at TIMESTAMP)'

head -n "$REFIT_OPERATIONS" "$REFIT_RECIPE/questions" | while IFS="$(printf '\t')" read -r way question; do
	"ask_$way" "$question" </dev/null
done >answers

kill "$server" && wait "$server"
kill -INT "$waiter" && wait "$waiter"
server= waiter=
