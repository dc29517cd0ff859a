#!/bin/sh
# load.sh REQUESTS: what the note did, `ab -c 10 -n 1000` again and again, and the memory of the process that answers
# after each tenth of the requests, or each 1000: memory against operations.
set -eu
requests=$1
read -r parent <httpd.pid
served=0 failed=0 points=0
: >points
while [ "$served" -lt "$requests" ]; do
    part=$((requests - served))
    [ "$part" -le 1000 ] || part=1000
    ab -q -c 10 -n "$part" "http://127.0.0.1:$REFIT_PORT_HTTP/load" >ab.out
    grep -q '^Failed requests: *0$' ab.out && ! grep -q '^Non-2xx responses' ab.out || failed=$((failed + 1))
    served=$((served + $(awk '/^Complete requests:/ { print $3 }' ab.out)))
    if [ $((served * 10)) -ge $(((points + 1) * requests)) ]; then
        points=$((served * 10 / requests))
        # One child, which serves them all.
        child=$(tr -d ' ' <"/proc/$parent/task/$parent/children")
        rss=$(awk '$1 == "Rss:" { print $2 }' "/proc/$child/smaps_rollup")
        echo "$served requests, process $child: RSS $rss KiB" | tee -a points
    fi
done
echo "$served $failed" >served
awk 'NR == 1 { print "RSS early:", $(NF - 1), "KiB" } END { print "RSS late:", $(NF - 1), "KiB" }' points
