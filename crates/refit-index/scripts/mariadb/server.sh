# For the other scripts. A socket in the instance's directory is the only way in, whatever the caller's variables name.
unset MYSQL_HOST MYSQL_PWD MYSQL_TCP_PORT MYSQL_UNIX_PORT
export LC_ALL=C
client() { mariadb --defaults-file="$REFIT_DIR/my.cnf" --batch --skip-column-names "$@"; }
# As the copy's owner, who may do nothing else, with the password of [client-copy]; without the client's commands that reach
# files and programs.
copy() {
	mariadb --defaults-file="$REFIT_DIR/my.cnf" --defaults-group-suffix=-copy --batch --skip-column-names \
		--database="$(cat database)" --binary-mode --default-character-set=utf8mb4 "$@"
}
# The tables of the copy, each after the first argument and before the second one.
tables() {
	client --raw -e "SELECT CONCAT('$1', '\`', table_schema, '\`.\`', REPLACE(table_name, '\`', '\`\`'), '\`', '$2')
		FROM information_schema.TABLES
		WHERE table_schema = '$(cat database)' AND table_type = 'BASE TABLE' AND engine = 'InnoDB' ORDER BY table_name"
}
analyze() { tables 'ANALYZE TABLE ' ';' | client >/dev/null; }
