#!/bin/sh
# usage: index.sh FILE: runs indexes/FILE on this run's copy of the database
set -eu
sqlite3 -bail data.db <"$REFIT_RECIPE/indexes/$1"
. "$REFIT_RECIPE/analyze.sh"
