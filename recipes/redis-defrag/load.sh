#!/bin/sh
# Writes values of all lengths from 40 to 1239 bytes, in 100 parts, then deletes nineteen of twenty: what is left lies
# scattered among what was freed.
set -eu
read -r pid <pid
each() {
    sha=$(redis-cli -s socket script load "
        local part, count = tonumber(ARGV[1]), tonumber(ARGV[2])
        for i = part * count + 1, (part + 1) * count do $1 end
        return (part + 1) * count .. ' $2'")
    seq 0 99 | sed "s/.*/evalsha $sha 0 & $((REFIT_OPERATIONS / 100))/" | redis-cli -s socket
}
each "redis.call('set', i, string.rep('x', 40 + i * 7919 % 1200)) redis.call('incr', 'written')" written
each "if i % 20 > 0 then redis.call('del', i) end" 'looked at'
[ ! -e purge ] || redis-cli -s socket memory purge
redis-cli -s socket info memory | awk -F '[:\r]' -v "rss=$(awk '$1 == "VmRSS:" { print $2 * 1024 }' "/proc/$pid/status")" '
    $1 == "used_memory" { printf "fragmentation %.2f\n", rss / $2 }'
