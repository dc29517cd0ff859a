// What each sync call answers on each kind of descriptor, and msync on each kind of range.
// argv[1]: a directory to work in. One line per cell: `call:kind result errno`. errno is 99 before each call,
// so 99 after it means "untouched".
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define CELL(call, kind, expression)                                                                               \
    do {                                                                                                           \
        errno = 99;                                                                                                \
        long result = (expression);                                                                                \
        int after = errno;                                                                                         \
        printf("%s:%s %ld %d\n", call, kind, result, after);                                                       \
    } while (0)

static int must(int fd, const char *what)
{
    if (fd < 0) {
        perror(what);
        exit(1);
    }
    return fd;
}

static void descriptor(const char *kind, int fd)
{
    const unsigned all = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    CELL("fsync", kind, fsync(fd));
    CELL("fdatasync", kind, fdatasync(fd));
    CELL("syncfs", kind, syncfs(fd));
    CELL("sync_file_range", kind, sync_file_range(fd, 0, 0, all));
    CELL("sync_file_range_one_page", kind, sync_file_range(fd, 4096, 4096, SYNC_FILE_RANGE_WRITE));
    CELL("sync_file_range_no_flags", kind, sync_file_range(fd, 0, 0, 0));
    CELL("sync_file_range_bad_flags", kind, sync_file_range(fd, 0, 0, 0x99));
    CELL("sync_file_range_negative_offset", kind, sync_file_range(fd, -1, 0, all));
    CELL("sync_file_range_negative_length", kind, sync_file_range(fd, 0, -1, all));
    CELL("sync_file_range_overflow", kind, sync_file_range(fd, 0x7fffffffffffffffLL, 2, all));
    CELL("syscall_fsync", kind, syscall(SYS_fsync, fd));
    CELL("syscall_fdatasync", kind, syscall(SYS_fdatasync, fd));
    CELL("syscall_syncfs", kind, syscall(SYS_syncfs, fd));
    CELL("syscall_sync_file_range", kind, syscall(SYS_sync_file_range, fd, 0L, 0L, all));
}

static void descriptors(void)
{
    int ends[2];
    descriptor("regular_rdwr", must(open("file", O_RDWR), "file"));
    descriptor("regular_rdonly", must(open("file", O_RDONLY), "file"));
    descriptor("regular_unlinked", must(open(".", O_TMPFILE | O_RDWR, 0600), "O_TMPFILE"));
    descriptor("directory", must(open(".", O_RDONLY | O_DIRECTORY), "."));
    descriptor("memfd", must(memfd_create("memfd", 0), "memfd"));
    descriptor("path_file", must(open("file", O_PATH), "O_PATH"));
    descriptor("path_directory", must(open(".", O_PATH), "O_PATH"));
    descriptor("closed", 900);
    descriptor("minus_one", -1);
    descriptor("int_min", (int)0x80000000u);
    must(pipe(ends), "pipe");
    descriptor("pipe_read", ends[0]);
    descriptor("pipe_write", ends[1]);
    must(mkfifo("fifo", 0600), "mkfifo");
    descriptor("fifo", must(open("fifo", O_RDWR), "fifo"));
    descriptor("socket_unix", must(socket(AF_UNIX, SOCK_STREAM, 0), "socket"));
    descriptor("socket_inet", must(socket(AF_INET, SOCK_STREAM, 0), "socket"));
    descriptor("eventfd", must(eventfd(0, 0), "eventfd"));
    descriptor("epoll", must(epoll_create1(0), "epoll"));
    descriptor("timerfd", must(timerfd_create(CLOCK_MONOTONIC, 0), "timerfd"));
    descriptor("inotify", must(inotify_init(), "inotify"));
    descriptor("dev_null", must(open("/dev/null", O_RDWR), "/dev/null"));
    descriptor("dev_zero", must(open("/dev/zero", O_RDWR), "/dev/zero"));
    descriptor("ptmx", must(open("/dev/ptmx", O_RDWR | O_NOCTTY), "/dev/ptmx"));
    descriptor("sysfs", must(open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY), "sysfs"));
    descriptor("proc_file", must(open("/proc/self/status", O_RDONLY), "/proc"));
    descriptor("proc_directory", must(open("/proc/self", O_RDONLY | O_DIRECTORY), "/proc"));
    descriptor("pidfd", must((int)syscall(SYS_pidfd_open, getpid(), 0), "pidfd"));
    descriptor("nsfs", must(open("/proc/self/ns/net", O_RDONLY), "nsfs"));
}

static char *map(int fd, int protection, int flags)
{
    char *at = mmap(NULL, 3 * 4096, protection, flags, fd, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return at;
}

static void ranges(void)
{
    int fd = must(open("mapped", O_RDWR | O_CREAT | O_EXCL, 0600), "mapped");
    must(ftruncate(fd, 3 * 4096), "ftruncate");
    char *shared = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    char *readonly = map(fd, PROT_READ, MAP_SHARED);
    char *private = map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    char *anonymous = map(-1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    char *holed = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    char *locked = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    must(munmap(holed + 4096, 4096), "munmap");
    must(mlock(locked, 4096), "mlock");
    memset(shared, 'x', 3 * 4096);

    CELL("msync", "sync", msync(shared, 3 * 4096, MS_SYNC));
    CELL("msync", "async", msync(shared, 3 * 4096, MS_ASYNC));
    CELL("msync", "no_flags", msync(shared, 3 * 4096, 0));
    CELL("msync", "sync_and_async", msync(shared, 4096, MS_SYNC | MS_ASYNC));
    CELL("msync", "unaligned", msync(shared + 1, 4096, MS_SYNC));
    CELL("msync", "unaligned_length", msync(shared, 5, MS_SYNC));
    CELL("msync", "unknown_flag", msync(shared, 4096, MS_SYNC | 0x80));
    CELL("msync", "readonly", msync(readonly, 3 * 4096, MS_SYNC));
    CELL("msync", "private", msync(private, 3 * 4096, MS_SYNC));
    CELL("msync", "anonymous", msync(anonymous, 3 * 4096, MS_SYNC));
    CELL("msync", "hole", msync(holed, 3 * 4096, MS_SYNC));
    CELL("msync", "starts_in_hole", msync(holed + 4096, 2 * 4096, MS_SYNC));
    CELL("msync", "zero_length_in_hole", msync(holed + 4096, 0, MS_SYNC));
    CELL("msync", "null_zero", msync(NULL, 0, MS_SYNC));
    CELL("msync", "null_one", msync(NULL, 1, MS_SYNC));
    CELL("msync", "length_wraps", msync(shared, (size_t)-1, MS_SYNC));
    CELL("msync", "invalidate", msync(shared, 4096, MS_SYNC | MS_INVALIDATE));
    CELL("msync", "invalidate_locked", msync(locked, 4096, MS_SYNC | MS_INVALIDATE));
    CELL("msync", "locked", msync(locked, 4096, MS_SYNC));
    CELL("syscall_msync", "sync", syscall(SYS_msync, shared, 4096L, MS_SYNC));
    CELL("syscall_msync", "hole", syscall(SYS_msync, holed, 3 * 4096L, MS_SYNC));
    CELL("syscall_msync", "unknown_flag", syscall(SYS_msync, shared, 4096L, MS_SYNC | 0x80));
    CELL("sync", "all", (sync(), 0L));
    CELL("syscall_sync", "all", syscall(SYS_sync));
}

int main(int argc, char **argv)
{
    if (argc != 2 || chdir(argv[1]) != 0)
        return 2;
    int fd = must(open("file", O_RDWR | O_CREAT | O_EXCL, 0600), "file");
    must((int)write(fd, "x", 1), "write");
    must(close(fd), "close");
    descriptors();
    ranges();
    return 0;
}
