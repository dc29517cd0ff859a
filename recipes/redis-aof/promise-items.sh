#!/bin/sh
# For the promise: an item at a time. The answer to RPUSH is the length of the list, which is the item's number.
set -eu
number=0
while :; do
	number=$((number + 1))
	echo "RPUSH items $number"
	sleep 0.002
done | redis-cli -s socket
