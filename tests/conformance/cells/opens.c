// Every door through which a file can be opened with O_SYNC, O_DSYNC, or __O_SYNC alone, which the kernel
// completes to O_SYNC.
#define _GNU_SOURCE
#include "opened.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __GLIBC__
// What FORTIFY_SOURCE makes of open and openat without a mode.
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
#endif

static int temporary(int suffixed, int flags)
{
    char plain[] = "tmp-XXXXXX", with_suffix[] = "tmp-XXXXXX.end";
    return suffixed ? mkostemps(with_suffix, 4, flags) : mkostemp(plain, flags);
}

static void with(const char *kind, const char *kind_to_read, int flags)
{
    int rw = O_RDWR | flags;
    for (size_t door = 0; door < door_count; door++) {
        OPENED(doors[door].name, kind, doors[door].open(AT_FDCWD, "file", rw, 0));
        OPENED(doors[door].name, kind_to_read, doors[door].open(AT_FDCWD, "file", O_RDONLY | flags, 0));
    }
    OPENED("open64", kind, open64("file", rw));
    OPENED("openat64", kind, openat64(AT_FDCWD, "file", rw));
    OPENED("mkostemp", kind, temporary(0, flags));
    OPENED("mkostemps", kind, temporary(1, flags));
#ifdef __GLIBC__
    OPENED("__open_2", kind, __open_2("file", rw));
    OPENED("__open64_2", kind, __open64_2("file", rw));
    OPENED("__openat_2", kind, __openat_2(AT_FDCWD, "file", rw));
    OPENED("__openat64_2", kind, __openat64_2(AT_FDCWD, "file", rw));
    char plain[] = "tmp-XXXXXX", with_suffix[] = "tmp-XXXXXX.end";
    OPENED("mkostemp64", kind, mkostemp64(plain, flags));
    OPENED("mkostemps64", kind, mkostemps64(with_suffix, 4, flags));
#endif
}

void open_cells(void)
{
    with("O_SYNC", "O_SYNC_to_read", O_SYNC);
    with("O_DSYNC", "O_DSYNC_to_read", O_DSYNC);
    with("lone_O_SYNC_bit", "lone_O_SYNC_bit_to_read", O_SYNC & ~O_DSYNC);
    OPENED("creat", "no_sync", creat("file", 0600));
    OPENED("creat64", "no_sync", creat64("file", 0600));
    FILE *stream = fopen("file", "r+");
    if (stream == NULL || fputc('x', stream) == EOF || fflush(stream) != 0)
        broken("fopen");
    CELL("fsync", "stream", fsync(fileno(stream)));
    OPENED("fopen", "no_sync", fileno(stream));
}
