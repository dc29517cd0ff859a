#!/bin/sh
# What statements wrote was rolled back: its dead rows leave the tables and every index, and a new index is on the disk.
set -eu
. "$REFIT_RECIPE/server.sh"
client -c VACUUM -c CHECKPOINT
