#!/bin/sh
# usage: index.sh FILE: runs indexes/FILE on this run's copy of the database
set -eu
. "$REFIT_RECIPE/server.sh"
copy <"$REFIT_RECIPE/indexes/$1"
analyze
