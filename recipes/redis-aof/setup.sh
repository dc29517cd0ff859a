#!/bin/sh
# A Redis of its own in $REFIT_DIR. It listens on a socket there and nowhere else.
set -eu
cat >redis.conf <<END
dir $REFIT_DIR
unixsocket $REFIT_DIR/socket
port 0
logfile $REFIT_DIR/server.log
save ""
appendonly yes
appendfsync always
END
