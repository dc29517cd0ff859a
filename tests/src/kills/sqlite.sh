# One process for rows in SQLite, one for files that dd creates with O_EXCL and O_DSYNC, one for a mapping that is synced.
prepare() {
    mkdir files
    sqlite3 t.db 'CREATE TABLE t (id TEXT)'
    truncate -s 1M mapped
}

load() {
    seq 150 | sed "s/.*/INSERT INTO t VALUES ('row $1 &'); SELECT 'row $1 &';/" | sqlite3 -bail t.db &
    rows=$!
    for n in $(seq 40); do
        echo "$n" | dd of="files/$1-$n" oflag=dsync conv=excl,notrunc status=none
        echo "file $1 $n"
    done &
    files=$!
    python3 -c '
import mmap, os, sys
at = int(sys.argv[1]) * 100
with open("mapped", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
    for n in range(1, 100):
        memory[at + n] = 1
        memory.flush()
        os.write(1, b"byte %d\n" % (at + n))
' "$1" &
    wait $rows && wait $files && wait $!
}

found() {
    sqlite3 t.db 'PRAGMA integrity_check; SELECT id FROM t' | grep -vx ok
    for file in files/*; do
        name=${file#files/}
        [ "$(cat "$file")" = "${name#*-}" ] && echo "file ${name%-*} ${name#*-}"
    done
    python3 -c '
for at, byte in enumerate(open("mapped", "rb").read()):
    if byte:
        print("byte", at)
'
}
