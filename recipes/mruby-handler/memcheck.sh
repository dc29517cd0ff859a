#!/bin/sh
# memcheck.sh [REQUESTS]: the same server under memcheck, and memcheck's verdict. By hand, for it takes longer than a run of
# the recipe. The port is 18080, or $PORT.
set -eu
REFIT_RECIPE=$(cd "$(dirname "$0")" && pwd)
REFIT_DIR=$(mktemp -d "${TMPDIR:-/var/tmp}/memcheck.XXXXXX")
REFIT_PORT_HTTP=${PORT:-18080}
export REFIT_RECIPE REFIT_DIR REFIT_PORT_HTTP
trap 'rm -rf "$REFIT_DIR"' EXIT
cd "$REFIT_DIR"
sh "$REFIT_RECIPE/setup.sh"
url=http://127.0.0.1:$REFIT_PORT_HTTP/load

# Apache that root starts changes to another user, who has to reach the directory.
as=
if [ "$(id -u)" = 0 ]; then
    chown nobody . && chmod 755 .
    as='setpriv --reuid=nobody --regid=nogroup --clear-groups'
fi
# -X: the parent answers itself, without a child.
# shellcheck disable=SC2086 # words on purpose
UNDER='valgrind --leak-check=full --log-file=memcheck' $as sh ./httpd -X &
server=$!
curl -sS --fail --noproxy '*' --retry 300 --retry-delay 1 --retry-connrefused -o first "$url" 2>refused || cat refused
ab -q -c 10 -n "${1:-1000}" "$url" >ab.out
grep '^Complete requests' ab.out
kill "$server"
wait "$server" || :
sed -n '/HEAP SUMMARY/,$p' memcheck
