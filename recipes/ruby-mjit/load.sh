#!/bin/sh
# usage: load.sh REQUESTS
set -eu
. ./jit
# There MJIT puts its libraries, a few for each method.
TMPDIR=$PWD/tmp
export TMPDIR
# 500 requests for each handler, however brief the run.
# Without rubygems MJIT has less to compile.
# shellcheck disable=SC2086 # words on purpose
ruby --disable-gems $options "$REFIT_RECIPE/requests.rb" "$1" $((($1 + 499) / 500)) >out 2>errors || {
	tail -n 5 errors >&2
	exit 1
}
cat out
