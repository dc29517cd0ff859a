#!/bin/sh
set -eu
. "$REFIT_RECIPE/path.sh"
exec postgres -D data 2>server.log
