#!/bin/sh
# A MariaDB of its own in $REFIT_DIR. It listens on a socket there and nowhere else.
set -eu
sed "s|@DIR@|$REFIT_DIR|" "$REFIT_RECIPE/my.cnf" >my.cnf
exec sh "$REFIT_RECIPE/install.sh"
