// fsync, fdatasync, syncfs and sync_file_range, by the C library's names and by syscall(), on each kind.
#define _GNU_SOURCE
#include "cell.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WHOLE = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER };

// As a 32-bit program has to pass it: each 64-bit value as two words (syscall(2)); on ARM after the flags, so that the
// words begin in an even register (sync_file_range(2)).
static long raw_range(int fd, long long offset, long long size, unsigned flags)
{
#ifdef __LP64__
    return syscall(SYS_sync_file_range, fd, offset, size, flags);
#elif defined SYS_sync_file_range2
    return syscall(SYS_sync_file_range2, fd, flags, (long)offset, (long)(offset >> 32), (long)size,
                   (long)(size >> 32));
#else
    return syscall(SYS_sync_file_range, fd, (long)offset, (long)(offset >> 32), (long)size, (long)(size >> 32),
                   flags);
#endif
}

static void ranges_of(const char *kind, int fd)
{
    CELL("sync_file_range", kind, sync_file_range(fd, 0, 0, WHOLE));
    CELL("sync_file_range_one_page", kind, sync_file_range(fd, 4096, 4096, SYNC_FILE_RANGE_WRITE));
    CELL("sync_file_range_no_flags", kind, sync_file_range(fd, 0, 0, 0));
    CELL("sync_file_range_no_flags_negative", kind, sync_file_range(fd, -1, 0, 0));
    CELL("sync_file_range_bad_flags", kind, sync_file_range(fd, 0, 0, 0x99));
    CELL("sync_file_range_negative_offset", kind, sync_file_range(fd, -1, 0, WHOLE));
    CELL("sync_file_range_negative_length", kind, sync_file_range(fd, 0, -1, WHOLE));
    CELL("sync_file_range_overflow", kind, sync_file_range(fd, LLONG_MAX, 2, WHOLE));
    CELL("syscall_sync_file_range", kind, raw_range(fd, 0, 0, WHOLE));
    CELL("syscall_sync_file_range_no_flags", kind, raw_range(fd, 0, 0, 0));
    CELL("syscall_sync_file_range_bad_flags", kind, raw_range(fd, 0, 0, 0x99));
    CELL("syscall_sync_file_range_negative_offset", kind, raw_range(fd, -1, 0, WHOLE));
}

void descriptor_cells(void)
{
    size_t count;
    const struct kind *kinds = all_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        const char *kind = kinds[i].name;
        int fd = kinds[i].fd;
        CELL("fsync", kind, fsync(fd));
        CELL("fdatasync", kind, fdatasync(fd));
        CELL("syncfs", kind, syncfs(fd));
        CELL("syscall_fsync", kind, syscall(SYS_fsync, fd));
        CELL("syscall_fdatasync", kind, syscall(SYS_fdatasync, fd));
        CELL("syscall_syncfs", kind, syscall(SYS_syncfs, fd));
        ranges_of(kind, fd);
    }
    CELL("sync", "everything", (sync(), 0L));
    CELL("syscall_sync", "everything", syscall(SYS_sync));
}
