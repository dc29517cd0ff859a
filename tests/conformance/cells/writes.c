// pwritev2 with RWF_DSYNC, RWF_SYNC, both, and a flag that the kernel does not know, at the file's position.
#define _GNU_SOURCE
#include "cell.h"

#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

// pwritev2(2)
enum { DSYNC = 0x2, SYNC = 0x4, UNKNOWN = 0x40000000 };

static long raw(int fd, const struct iovec *piece, int flags)
{
    return syscall(SYS_pwritev2, fd, piece, 1, -1L, -1L, flags); // both words of the offset -1
}

static void written(const char *kind, int fd)
{
    char zeros[8] = {0};
    struct iovec piece = {.iov_base = zeros, .iov_len = sizeof zeros};
    CELL("syscall_pwritev2_dsync", kind, raw(fd, &piece, DSYNC));
    CELL("syscall_pwritev2_sync", kind, raw(fd, &piece, SYNC));
    CELL("syscall_pwritev2_both", kind, raw(fd, &piece, SYNC | DSYNC));
    CELL("syscall_pwritev2_unknown", kind, raw(fd, &piece, DSYNC | UNKNOWN));
#ifdef __GLIBC__ // musl has none before 1.2.5
    CELL("pwritev2_dsync", kind, pwritev2(fd, &piece, 1, -1, DSYNC));
    CELL("pwritev2_sync", kind, pwritev2(fd, &piece, 1, -1, SYNC));
    CELL("pwritev2_unknown", kind, pwritev2(fd, &piece, 1, -1, DSYNC | UNKNOWN));
    CELL("pwritev64v2_both", kind, pwritev64v2(fd, &piece, 1, -1, SYNC | DSYNC));
#endif
}

void write_cells(void)
{
    size_t count;
    const struct kind *kinds = all_kinds(&count);
    for (size_t i = 0; i < count; i++)
        written(kinds[i].name, kinds[i].fd);
}
