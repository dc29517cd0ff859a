#!/bin/sh
# A Redis of its own in $REFIT_DIR. It listens on a socket there and nowhere else.
set -eu
cat >redis.conf <<END
dir $REFIT_DIR
unixsocket $REFIT_DIR/socket
port 0
save ""
appendonly yes
appendfsync always
END
