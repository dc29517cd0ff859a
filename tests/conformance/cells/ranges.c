// msync on each kind of range, by the C library's name and by syscall().
#define _GNU_SOURCE
#include "cell.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, THREE = 3 * PAGE };

static char *map(int fd, int protection, int flags)
{
    char *at = mmap(NULL, THREE, protection, flags, fd, 0);
    if (at == MAP_FAILED)
        broken("mmap");
    return at;
}

static void both(const char *kind, char *at, size_t size, int flags)
{
    CELL("msync", kind, msync(at, size, flags));
    CELL("syscall_msync", kind, syscall(SYS_msync, at, size, flags));
}

void range_cells(void)
{
    int fd = must(open("mapped", O_RDWR | O_CREAT | O_EXCL, 0600), "mapped");
    must(ftruncate(fd, THREE), "ftruncate");
    char *shared = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    char *readonly = map(fd, PROT_READ, MAP_SHARED);
    char *unreadable = map(fd, PROT_NONE, MAP_SHARED);
    char *private = map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    char *anonymous = map(-1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    char *shared_anonymous = map(-1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
    char *holed = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    char *locked = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    must(munmap(holed + PAGE, PAGE), "munmap");
    must(mlock(locked, PAGE), "mlock");
    memset(shared, 'x', THREE);

    both("sync", shared, THREE, MS_SYNC);
    both("async", shared, THREE, MS_ASYNC);
    both("no_flags", shared, THREE, 0);
    both("sync_and_async", shared, PAGE, MS_SYNC | MS_ASYNC);
    both("unaligned", shared + 1, PAGE, MS_SYNC);
    both("unaligned_length", shared, 5, MS_SYNC);
    both("unknown_flag", shared, PAGE, MS_SYNC | 0x80);
    both("only_an_unknown_flag", shared, PAGE, 0x80);
    both("readonly", readonly, THREE, MS_SYNC);
    both("unreadable", unreadable, THREE, MS_SYNC);
    both("private", private, THREE, MS_SYNC);
    both("anonymous", anonymous, THREE, MS_SYNC);
    both("shared_anonymous", shared_anonymous, THREE, MS_SYNC);
    both("hole", holed, THREE, MS_SYNC);
    both("hole_async", holed, THREE, MS_ASYNC);
    both("starts_in_hole", holed + PAGE, (size_t)2 * PAGE, MS_SYNC);
    both("zero_length", shared, 0, MS_SYNC);
    both("zero_length_in_hole", holed + PAGE, 0, MS_SYNC);
    both("null_zero", NULL, 0, MS_SYNC);
    both("null_one", NULL, 1, MS_SYNC);
    both("length_wraps", shared, SIZE_MAX, MS_SYNC);
    both("end_wraps", shared, SIZE_MAX - PAGE, MS_SYNC);
    both("invalidate", shared, PAGE, MS_SYNC | MS_INVALIDATE);
    both("invalidate_locked", locked, PAGE, MS_SYNC | MS_INVALIDATE);
    both("locked", locked, PAGE, MS_SYNC);
}
