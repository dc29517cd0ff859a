#!/bin/sh
# $REFIT_LOAD_CLIENTS clients, by default as many as threads, ask again as soon as they have an answer.
set -eu
ab -q -k -c "$REFIT_LOAD_CLIENTS" -n "$REFIT_OPERATIONS" -e percentiles.csv "http://127.0.0.1:$REFIT_PORT_HTTP/load" >ab.out
awk -F, '$1 == 99 { print "p" $1, $2 }' percentiles.csv
