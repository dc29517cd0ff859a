// Writes to argv[1] by pwritev2 with RWF_DSYNC, with RWF_SYNC, and (offset -1: the file position) with both.
// One line per write: `flags result errno`; errno is 99 before each, so 99 means "untouched".
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0644) : -1;
    if (fd < 0)
        return 2;
    struct iovec piece = {.iov_base = "xyz", .iov_len = 3};
    static const struct {
        const char *name;
        off_t offset;
        int flags;
    } writes[] = {
        {"RWF_DSYNC", 0, RWF_DSYNC},
        {"RWF_SYNC", 3, RWF_SYNC},
        {"both_at_position", -1, RWF_SYNC | RWF_DSYNC},
        {"unknown_flag", 0, RWF_DSYNC | 0x40000000},
    };
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        errno = 99;
        ssize_t result = pwritev2(fd, &piece, 1, writes[i].offset, writes[i].flags);
        int after = errno;
        printf("%s %zd %d\n", writes[i].name, result, after);
    }
    return 0;
}
