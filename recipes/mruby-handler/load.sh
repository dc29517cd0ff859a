#!/bin/sh
# load.sh REQUESTS: ten clients that ask again as soon as they have an answer. ab's table of percentiles has whole
# milliseconds only, its CSV file has microseconds.
set -eu
ab -q -k -c 10 -n "$1" -e percentiles.csv "http://127.0.0.1:$REFIT_PORT_HTTP/load" >ab.out
cat ab.out
awk -F, '$1 == 50 || $1 == 99 { print "p" $1, $2 }' percentiles.csv
