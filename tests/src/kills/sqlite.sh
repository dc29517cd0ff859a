# One process for rows in SQLite, one for files that dd creates with O_EXCL and O_DSYNC, one for a mapping that is synced.
prepare() {
    mkdir files
    sqlite3 t.db 'CREATE TABLE t (id TEXT)'
    truncate -s 1M mapped
}

rows() {
    n=0
    until [ -e enough ]; do
        n=$((n + 1))
        echo "INSERT INTO t VALUES ('row $1 $n'); SELECT 'row $1 $n';"
    done
}

load() {
    rows "$1" | sqlite3 -bail t.db &
    rows=$!
    n=0
    until [ -e enough ]; do
        n=$((n + 1))
        echo "$n" | dd of="files/$1-$n" oflag=dsync conv=excl,notrunc status=none
        echo "file $1 $n"
    done &
    files=$!
    python3 -c '
import mmap, os, sys
at = int(sys.argv[1]) * 8192
with open("mapped", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
    n = 0
    while not os.path.exists("enough"):
        n += 1
        place = at + 1 + n % 8191
        is_new = memory[place] == 0
        memory[place] = 1
        memory.flush()
        if is_new:
            os.write(1, b"byte %d\n" % place)
' "$1" &
    wait $rows && wait $files && wait $!
}

found() {
    sqlite3 t.db 'PRAGMA integrity_check; SELECT id FROM t' | grep -vx ok
    # An empty file has no line.
    grep -r '' files | sed -n 's,^files/\(.*\)-\(.*\):\2$,file \1 \2,p'
    python3 -c '
for at, byte in enumerate(open("mapped", "rb").read()):
    if byte:
        print("byte", at)
'
}
