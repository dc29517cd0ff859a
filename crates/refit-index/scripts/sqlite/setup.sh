#!/bin/sh
# This run's copy of the database. Where it had statistics they are made anew, as they are with a new index.
set -eu
umask 077
gzip -dc "$REFIT_RECIPE/data.db.gz" >data.db
. "$REFIT_RECIPE/analyze.sh"
