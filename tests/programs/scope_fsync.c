// argv: IN OUT, two directories on one filesystem. Syncs files of both in ways that distinguish a file from its name
// and from its descriptor; prints `LABEL RESULT FLAGS` for each, FLAGS being what F_GETFL shows of O_SYNC and O_APPEND.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char in[512], out[512];

static const char *path(const char *dir, const char *name)
{
    static char text[4][600];
    static int next;
    char *to = text[next++ % 4];
    snprintf(to, sizeof text[0], "%s/%s", dir, name);
    return to;
}

static int made(const char *file, int flags)
{
    int fd = open(file, O_RDWR | O_CREAT | flags, 0644);
    if (fd < 0 || write(fd, "x", 1) != 1) {
        perror(file);
        exit(1);
    }
    return fd;
}

static void told(const char *label, int fd, int result)
{
    int flags = fcntl(fd, F_GETFL);
    printf("%s %d%s%s%s\n", label, result ? errno : 0, flags & O_DSYNC ? " sync" : "",
           flags & O_APPEND ? " append" : "", fcntl(fd, F_GETFD) & FD_CLOEXEC ? " cloexec" : "");
}

static void synced(const char *label, int fd)
{
    told(label, fd, fsync(fd));
}

int main(int argc, char **argv)
{
    if (argc != 3 || strlen(argv[1]) > 500 || strlen(argv[2]) > 500)
        return 2;
    strcpy(in, argv[1]);
    strcpy(out, argv[2]);

    int a = made(path(in, "a"), 0), b = made(path(out, "b"), 0);
    synced("inside", a);
    synced("outside", b);
    if (rename(path(in, "a"), path(out, "a")) != 0)
        return 1;
    synced("moved_out", a);
    if (rename(path(out, "a"), path(in, "a")) != 0)
        return 1;
    synced("moved_in", a);
    int number = dup(a);
    synced("another_number", number);
    dup2(b, number);
    synced("number_of_another_file", number);
    FILE *stream = fopen(path(in, "stream"), "w");
    if (stream == NULL || fputs("x", stream) < 0 || fflush(stream) != 0)
        return 1;
    synced("stream", fileno(stream));
    char temporary[600];
    snprintf(temporary, sizeof temporary, "%s/tmp.XXXXXX", in);
    int unlinked = mkstemp(temporary);
    unlink(temporary);
    synced("unlinked", unlinked);
    synced("directory_inside", open(in, O_RDONLY | O_DIRECTORY));
    synced("directory_outside", open(out, O_RDONLY | O_DIRECTORY));
    if (symlink(in, path(out, "link")) != 0)
        return 1;
    synced("through_a_link", made(path(out, "link/c"), 0));
    int relative = open(in, O_RDONLY | O_DIRECTORY);
    synced("below_a_descriptor", openat(relative, "a", O_RDWR));
    told("fdatasync_inside", a, fdatasync(a));

    synced("opened_sync_inside", made(path(in, "s"), O_SYNC | O_EXCL | O_APPEND | O_CLOEXEC));
    synced("opened_sync_outside", made(path(out, "s"), O_SYNC | O_EXCL | O_APPEND));

    char *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, a, 0);
    mapped[0] = 'y';
    told("mapping_inside", a, msync(mapped, 4096, MS_SYNC));
    told("filesystem", a, syncfs(a));
    char text[4] = "";
    if (pread(a, text, 1, 0) != 1 || text[0] != 'y')
        return 1;
    return 0;
}
