// build: -shared -fPIC
// A preload that answers as the kernel does and sets errno to 0 where all went well, as no function may: a
// mutant, so that a test of exactness can show that it would notice.
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ZEROES(name, parameters, ...)                                                                              \
    int name parameters;                                                                                           \
    int name parameters                                                                                            \
    {                                                                                                              \
        long result = syscall(SYS_##name, __VA_ARGS__);                                                            \
        if (result >= 0)                                                                                           \
            errno = 0;                                                                                             \
        return (int)result;                                                                                        \
    }

ZEROES(fsync, (int fd), fd)
ZEROES(fdatasync, (int fd), fd)
ZEROES(syncfs, (int fd), fd)
ZEROES(sync_file_range, (int fd, long offset, long size, unsigned flags), fd, offset, size, flags)
ZEROES(msync, (void *address, size_t size, int flags), address, size, flags)
