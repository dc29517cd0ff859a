// Opens files in directory argv[1] with each synchronous flag through each function that can open, and writes
// one byte to each. One line per open: `variant asked got`, where got is F_GETFL's sync bits, or the errno.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SYNC_ALONE (O_SYNC & ~O_DSYNC) // __O_SYNC, which the kernel completes to O_SYNC

// What FORTIFY_SOURCE makes of open and openat without a mode.
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

static const char *bits(int flags)
{
    if ((flags & O_SYNC) == O_SYNC)
        return "O_SYNC";
    if (flags & O_DSYNC)
        return "O_DSYNC";
    return flags & O_SYNC ? "__O_SYNC" : "none";
}

static void report(const char *variant, int asked, int fd)
{
    if (fd < 0) {
        printf("%s %s errno=%d\n", variant, bits(asked), errno);
        return;
    }
    printf("%s %s %s\n", variant, bits(asked), bits(fcntl(fd, F_GETFL)));
    if (write(fd, "x", 1) != 1)
        perror(variant);
    close(fd);
}

static int temporary(int suffixed, int large, int flags)
{
    char plain[] = "tmp-XXXXXX", with_suffix[] = "tmp-XXXXXX.end";
    if (suffixed)
        return large ? mkostemps64(with_suffix, 4, flags) : mkostemps(with_suffix, 4, flags);
    return large ? mkostemp64(plain, flags) : mkostemp(plain, flags);
}

static int with_openat2(int flags)
{
    struct open_how how = {.flags = (unsigned)(O_RDWR | flags)};
    return (int)syscall(SYS_openat2, AT_FDCWD, "file", &how, sizeof how);
}

int main(int argc, char **argv)
{
    static const int asked[] = {O_SYNC, O_DSYNC, SYNC_ALONE};
    if (argc != 2 || chdir(argv[1]) != 0)
        return 2;
    report("creat", 0, creat("file", 0600));
    report("creat64", 0, creat64("file", 0600));
    for (int i = 0; i < 3; i++) {
        int flags = asked[i], rw = O_RDWR | flags;
        report("open", flags, open("file", rw));
        report("open_create", flags, open("file", rw | O_CREAT, 0600));
        report("open64", flags, open64("file", rw));
        report("openat", flags, openat(AT_FDCWD, "file", rw));
        report("openat64", flags, openat64(AT_FDCWD, "file", rw));
        report("__open_2", flags, __open_2("file", rw));
        report("__open64_2", flags, __open64_2("file", rw));
        report("__openat_2", flags, __openat_2(AT_FDCWD, "file", rw));
        report("__openat64_2", flags, __openat64_2(AT_FDCWD, "file", rw));
        report("tmpfile", flags, open(".", O_TMPFILE | rw, 0600));
        report("mkostemp", flags, temporary(0, 0, flags));
        report("mkostemp64", flags, temporary(0, 1, flags));
        report("mkostemps", flags, temporary(1, 0, flags));
        report("mkostemps64", flags, temporary(1, 1, flags));
#ifdef SYS_open
        report("syscall_open", flags, (int)syscall(SYS_open, "file", rw));
#endif
        report("syscall_openat", flags, (int)syscall(SYS_openat, AT_FDCWD, "file", rw));
        report("syscall_openat2", flags, with_openat2(flags));
    }
    FILE *stream = fopen("file", "r+");
    if (stream == NULL || fputc('x', stream) == EOF || fflush(stream) != 0 || fsync(fileno(stream)) != 0)
        return 1;
    printf("fopen none %s\n", bits(fcntl(fileno(stream), F_GETFL)));
    return 0;
}
