#!/bin/sh
# Asks for the requests in five parts and reads the server's memory after each: memory against operations. What comes
# before the first reading is start-up and filling of pools, and not counted as growth.
set -eu
read -r pid <pid
part=$((REFIT_OPERATIONS / 5))
: >points
for _ in 1 2 3 4 5; do
    echo "$part" >ask
    read -r reply <answer
    pss=$(awk '$1 == "Pss:" { print $2 }' "/proc/$pid/smaps_rollup")
    echo "$reply, PSS $pss KiB" | tee -a points
done
awk '
    NR == 1 { requests = $1; pss = $(NF - 1) }
    END { printf "growth %.1f bytes for each request\n", ($(NF - 1) - pss) * 1024 / ($1 - requests) }' points
