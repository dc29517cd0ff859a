// build: -shared -fPIC
// A preload of a user's own: fsync fails, as a test's fault injection makes it; sync calls of other names are answered
// without the kernel; a path is mapped to another one.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *mapped(const char *path)
{
    return strcmp(path, "/virtual/conf") ? path : "/etc/passwd";
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = va_arg(rest, int);
    va_end(rest);
    return syscall(SYS_openat, AT_FDCWD, mapped(path), flags, mode);
}

int fsync(int fd)
{
    (void)fd;
    errno = EIO;
    return -1;
}

int fdatasync(int fd)
{
    return fd == 1000 ? 0 : fsync(fd); // a file of its own
}

void sync(void)
{
    errno = EDOM;
}

int syncfs(int fd)
{
    return fdatasync(fd);
}

int sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags)
{
    (void)flags;
    errno = EXDEV;
    return fd == 1000 ? (int)(offset + size) : -1;
}

int msync(void *address, size_t size, int flags)
{
    (void)size;
    (void)flags;
    errno = EBUSY;
    return address ? -1 : 7;
}
