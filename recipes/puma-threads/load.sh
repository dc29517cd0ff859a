#!/bin/sh
# As many clients as threads, which ask again as soon as they have an answer.
set -eu
ab -q -k -c 16 -n "$REFIT_OPERATIONS" -e percentiles.csv "http://127.0.0.1:$REFIT_PORT_HTTP/load" >ab.out
awk -F, '$1 == 99 { print "p" $1, $2 }' percentiles.csv
