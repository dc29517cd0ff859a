#!/bin/sh
set -eu
exec postfix -c "$REFIT_MOUNT/conf" start-fg
