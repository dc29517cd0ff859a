# For the other scripts: a client of the instance's server.
client() { mariadb --defaults-file="$REFIT_DIR/my.cnf" "$@"; }
# Rows that setup.sh makes; a run adds its own after them. A check of the recipe itself needs no million.
rows=1000000
[ "$REFIT_OPERATIONS" -ge 1000 ] || rows=100000
