#!/bin/sh
set -eu
exec mariadbd --defaults-file="$REFIT_DIR/my.cnf"
