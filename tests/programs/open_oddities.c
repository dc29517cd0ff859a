// What opens with O_SYNC, O_DSYNC or O_DIRECT answer where there is something odd about them, in directory argv[1].
// One line each: `case result errno sync direct mode`: result is `fd` or -1; errno is 99 before each call; then
// F_GETFL's bits, and the permissions of the file.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *sync_bits(int flags)
{
    return (flags & O_SYNC) == O_SYNC ? "O_SYNC" : flags & O_DSYNC ? "O_DSYNC" : "none";
}

static void report(const char *name, int fd, int after)
{
    struct stat st;
    if (fd < 0) {
        printf("%s %d %d\n", name, fd, after);
        return;
    }
    int flags = fcntl(fd, F_GETFL);
    printf("%s fd %d %s %s %o\n", name, after, sync_bits(flags), flags & O_DIRECT ? "direct" : "buffered",
           fstat(fd, &st) == 0 ? st.st_mode & 07777 : 0);
    close(fd);
}

#define OPEN(name, expression)                                                                                     \
    do {                                                                                                           \
        errno = 99;                                                                                                \
        int fd = (int)(expression);                                                                                \
        report(name, fd, errno);                                                                                   \
    } while (0)

// A struct of a later kernel: larger, its tail all zeros (which is fine) or not (E2BIG).
struct larger_how {
    struct open_how how;
    unsigned long long tail[4];
};

static long by_openat2(unsigned long long flags, unsigned long long resolve, unsigned long long tail, size_t size)
{
    struct larger_how larger = {.how = {.flags = flags, .resolve = resolve}, .tail = {tail}};
    return syscall(SYS_openat2, AT_FDCWD, "file", &larger, size);
}

static void set_flags(const char *name, const char *path, int flags)
{
    int fd = open(path, O_RDWR);
    errno = 99;
    int result = fcntl(fd, F_SETFL, flags), after = errno;
    printf("%s %d %d %s %s\n", name, result, after, sync_bits(fcntl(fd, F_GETFL)),
           fcntl(fd, F_GETFL) & O_DIRECT ? "direct" : "buffered");
    close(fd);
}

int main(int argc, char **argv)
{
    static char huge[1 << 20];
    const size_t size = sizeof(struct open_how);
    char template[] = "not-a-template";
    if (argc != 2 || chdir(argv[1]) != 0 || close(creat("file", 0600)) != 0 || mkfifo("fifo", 0600) != 0 ||
        symlink("loop", "loop") != 0)
        return 2;
    umask(027);
    OPEN("creates_with_mode", open("created", O_RDWR | O_CREAT | O_EXCL | O_SYNC, 0765));
    OPEN("creates_at_with_mode", openat(AT_FDCWD, "created-at", O_RDWR | O_CREAT | O_DSYNC, 0765));
    OPEN("tmpfile_with_mode", open(".", O_TMPFILE | O_RDWR | O_SYNC, 0765));
    OPEN("exists", open("created", O_RDWR | O_CREAT | O_EXCL | O_SYNC, 0600));
    OPEN("missing", open("missing", O_RDWR | O_SYNC));
    OPEN("directory_to_write", openat(AT_FDCWD, ".", O_RDWR | O_DSYNC));
    OPEN("directory_to_read", open(".", O_RDONLY | O_DIRECTORY | O_SYNC));
    OPEN("loop", open("loop", O_RDWR | O_SYNC));
    OPEN("no_name", open("", O_RDWR | O_SYNC));
    OPEN("bad_pointer", syscall(SYS_openat, AT_FDCWD, 1L, O_RDWR | O_SYNC, 0));
    OPEN("bad_directory", openat(900, "file", O_RDWR | O_SYNC));
    OPEN("path_only", open("file", O_PATH | O_SYNC));
    OPEN("dev_null_sync", open("/dev/null", O_RDWR | O_SYNC));
    OPEN("dev_null_direct", open("/dev/null", O_RDWR | O_DIRECT));
    OPEN("fifo_packets", open("fifo", O_RDWR | O_DIRECT));
    OPEN("bad_template", mkostemp(template, O_SYNC));
    OPEN("openat2", by_openat2(O_RDWR | O_SYNC, 0, 0, size));
    OPEN("openat2_path_only", by_openat2(O_PATH | O_SYNC, 0, 0, size));
    OPEN("openat2_unknown_flag", by_openat2(O_RDWR | O_SYNC | 1ull << 40, 0, 0, size));
    OPEN("openat2_unknown_resolve", by_openat2(O_RDWR | O_SYNC, 1ull << 40, 0, size));
    OPEN("openat2_small", by_openat2(O_RDWR | O_SYNC, 0, 0, 8));
    OPEN("openat2_larger", by_openat2(O_RDWR | O_SYNC, 0, 0, size + 8));
    OPEN("openat2_largest", by_openat2(O_RDWR | O_DSYNC, 0, 0, size + 32));
    OPEN("openat2_unknown_tail", by_openat2(O_RDWR | O_SYNC, 0, 1, size + 8));
    OPEN("openat2_huge", syscall(SYS_openat2, AT_FDCWD, "file", huge, sizeof huge));
    OPEN("openat2_bad_pointer", syscall(SYS_openat2, AT_FDCWD, "file", 1L, size));
    // F_SETFL ignores the sync bits (fcntl(2)); on a FIFO O_DIRECT means packets.
    set_flags("setfl_sync", "file", O_SYNC);
    set_flags("setfl_fifo_packets", "fifo", O_DIRECT);
    set_flags("setfl_dev_null_direct", "/dev/null", O_DIRECT);
    return 0;
}
