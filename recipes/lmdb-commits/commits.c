// commits write SYNC [COUNT]: adds the items 1, 2, 3 … to the database in `data`, a transaction each; without a count until
// it is ended, printing each item after its commit, with a pause. SYNC is both, data or none.
// commits read: prints the items.
#define _DEFAULT_SOURCE // usleep(3)
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must(int error, const char *what) {
    if (error) {
        fprintf(stderr, "%s: %s\n", what, mdb_strerror(error));
        exit(1);
    }
}

static unsigned flags_of(const char *sync) {
    if (strcmp(sync, "both") == 0) return 0;
    if (strcmp(sync, "data") == 0) return MDB_NOMETASYNC;
    if (strcmp(sync, "none") == 0) return MDB_NOSYNC;
    fprintf(stderr, "SYNC is both, data or none, not %s\n", sync);
    exit(2);
}

static MDB_env *opened(unsigned flags) {
    MDB_env *env;
    must(mdb_env_create(&env), "mdb_env_create");
    must(mdb_env_set_mapsize(env, (size_t)256 << 20), "mdb_env_set_mapsize");
    must(mdb_env_open(env, "data", flags, 0600), "mdb_env_open");
    return env;
}

static void add(MDB_env *env, unsigned number) {
    char text[64];
    // As long as a small record.
    snprintf(text, sizeof text, "item %u, and so much more that it is a record", number);
    MDB_val key = {sizeof number, &number}, value = {sizeof text, text};
    MDB_txn *txn;
    MDB_dbi items;
    must(mdb_txn_begin(env, NULL, 0, &txn), "mdb_txn_begin");
    must(mdb_dbi_open(txn, NULL, MDB_INTEGERKEY, &items), "mdb_dbi_open");
    must(mdb_put(txn, items, &key, &value, MDB_NOOVERWRITE), "mdb_put");
    must(mdb_txn_commit(txn), "mdb_txn_commit");
}

static void read_all(MDB_env *env) {
    MDB_txn *txn;
    MDB_dbi items;
    MDB_cursor *cursor;
    MDB_val key, value;
    must(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), "mdb_txn_begin");
    must(mdb_dbi_open(txn, NULL, MDB_INTEGERKEY, &items), "mdb_dbi_open");
    must(mdb_cursor_open(txn, items, &cursor), "mdb_cursor_open");
    int error;
    while ((error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        unsigned number, found = 0;
        memcpy(&number, key.mv_data, sizeof number);
        // An item is whole when its text names it.
        int is_whole = sscanf(value.mv_data, "item %u, and so much more", &found) == 1 && found == number;
        printf("%s%u\n", is_whole ? "" : "!", number);
    }
    must(error == MDB_NOTFOUND ? 0 : error, "mdb_cursor_get");
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "read") == 0) {
        // Without the lock file, which may be damaged and which nobody else uses.
        read_all(opened(MDB_NOLOCK));
        return 0;
    }
    if (argc < 3 || strcmp(argv[1], "write") != 0) return 2;
    MDB_env *env = opened(flags_of(argv[2]));
    unsigned count = argc > 3 ? (unsigned)atol(argv[3]) : 0;
    for (unsigned number = 1; count == 0 || number <= count; number++) {
        add(env, number);
        if (count == 0) {
            printf("%u\n", number);
            fflush(stdout);
            usleep(2000);
        }
    }
    mdb_env_close(env);
    return 0;
}
