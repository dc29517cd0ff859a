// build: -shared -fPIC
// A preload that returns what the kernel returns, but sets errno to 0 on success, which no function may do: a mutant,
// with which the conformance test shows that it notices.
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
