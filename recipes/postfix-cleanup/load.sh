#!/bin/sh
# Sends so many mails, and ends when Postfix has passed all of them on and taken them off its queue.
# usage: load.sh COUNT DOMAIN
set -eu
count=$1 domain=$2

# It writes to tmpfs, so that its files are not what the disk is busy with.
(cd "$REFIT_TMPFS/sink" && exec smtp-sink -u nobody -d "$domain." "127.0.0.1:$REFIT_PORT_SINK" 1000) &
sink=$!
trap 'kill "$sink"' EXIT
listens=$(printf ' 0100007F:%04X 00000000:0000 0A ' "$REFIT_PORT_SINK")
until grep -q "$listens" /proc/net/tcp; do
	kill -0 "$sink"
	sleep 0.01
done

# -N: each mail is for another recipient, by which the check knows it.
removed=$(grep -c ': removed$' log || :)
began=$(date +%s%N)
smtp-source -N -s "$REFIT_LOAD_SESSIONS" -m "$count" -F mail -f a@refit.test -t "@$domain" "127.0.0.1:$REFIT_PORT_SMTP"
ended=$(date +%s%N)

# The queue's own word, read as it is written: asking the queue again and again would be a load of its own.
removed=$(tail -n +1 -f log | grep -c -m "$((removed + count))" ': removed$')

awk -v count="$count" -v ns="$((ended - began))" 'BEGIN { printf "accepted %.1f mails/s\n", count / ns * 1e9 }'
