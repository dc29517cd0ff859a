// DIRECTORY: opens a file without a name there (O_TMPFILE, O_DSYNC) in each way, links it as DIRECTORY/linked, and prints
// its mode, whether its descriptor is synchronous, and whether it says that it had no name.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int FLAGS = O_TMPFILE | O_WRONLY | O_DSYNC;

static int open_in(const char *way, const char *directory)
{
    if (strcmp(way, "open") == 0)
        return open(directory, FLAGS, 0666);
    if (strcmp(way, "openat") == 0)
        return openat(AT_FDCWD, directory, FLAGS, 0666);
    if (strcmp(way, "syscall") == 0)
        return syscall(SYS_openat, AT_FDCWD, directory, FLAGS, 0666);
    struct open_how how = {.flags = FLAGS, .mode = 0666};
    return syscall(SYS_openat2, AT_FDCWD, directory, &how, sizeof how);
}

int main(int argc, char **argv)
{
    static const char *const ways[] = {"open", "openat", "syscall", "openat2"};
    if (argc != 2)
        return 2;
    umask(022);
    for (int i = 0; i < 4; i++) {
        char name[4096], link[64];
        struct stat it;
        int fd = open_in(ways[i], argv[1]);
        if (fd < 0 || write(fd, "hello\n", 6) != 6) {
            printf("%s: %s\n", ways[i], strerror(errno));
            return errno == EOPNOTSUPP ? 3 : 1;
        }
        snprintf(name, sizeof name, "%s/linked", argv[1]);
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        unlink(name);
        int linked = linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
        int flags = fcntl(fd, F_GETFL);
        fstat(fd, &it);
        printf("%s: linked %d, mode %o, sync %d, unnamed %d\n", ways[i], linked, it.st_mode & 07777,
               (flags & O_DSYNC) != 0, (flags & O_TMPFILE) == O_TMPFILE);
        if (linked != 0)
            return 1;
        close(fd);
    }
    return 0;
}
