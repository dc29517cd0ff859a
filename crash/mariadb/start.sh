#!/bin/sh
set -eu
exec mariadbd --defaults-file="$REFIT_MOUNT/my.cnf"
