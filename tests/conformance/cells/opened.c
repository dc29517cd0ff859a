#define _GNU_SOURCE
#include "opened.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int by_open(int dir, const char *path, int flags, mode_t mode)
{
    (void)dir;
    return open(path, flags, mode);
}

static int by_openat(int dir, const char *path, int flags, mode_t mode)
{
    return openat(dir, path, flags, mode);
}

static int by_syscall_open(int dir, const char *path, int flags, mode_t mode)
{
    (void)dir;
#ifdef SYS_open
    return (int)syscall(SYS_open, path, flags, mode);
#else
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
#endif
}

static int by_syscall_openat(int dir, const char *path, int flags, mode_t mode)
{
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

static int by_syscall_openat2(int dir, const char *path, int flags, mode_t mode)
{
    // Without O_CREAT or O_TMPFILE it refuses a mode (openat2(2)).
    int creates = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
    struct open_how how = {.flags = (unsigned)flags, .mode = creates ? mode : 0};
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

const struct door doors[] = {
    {"open", by_open, 0},
    {"openat", by_openat, 1},
    {"syscall_open", by_syscall_open, 0},
    {"syscall_openat", by_syscall_openat, 1},
    {"syscall_openat2", by_syscall_openat2, 1},
};
const size_t door_count = sizeof doors / sizeof doors[0];

static const char *sync_bits(int flags)
{
    if ((flags & O_SYNC) == O_SYNC)
        return "O_SYNC";
    if (flags & O_DSYNC)
        return "O_DSYNC";
    return flags & O_SYNC ? "__O_SYNC" : "none";
}

// O_LARGEFILE as F_GETFL tells it (asm/fcntl.h); to 64-bit programs the C library says 0.
#if defined __aarch64__ || defined __arm__
#define LARGEFILE 0400000
#else
#define LARGEFILE 0100000
#endif

const char *flags_text(int flags)
{
    static const struct {
        int bits;
        const char *name;
    } of_the_architecture[] = {
        {LARGEFILE, "+O_LARGEFILE"}, {O_TMPFILE, "+O_TMPFILE"},   {O_DIRECTORY, "+O_DIRECTORY"},
        {O_DIRECT, "+O_DIRECT"},     {O_NOFOLLOW, "+O_NOFOLLOW"},
    };
    static char text[100];
    char names[sizeof text - 20] = "";
    flags &= ~O_SYNC;
    for (size_t i = 0; i < sizeof of_the_architecture / sizeof *of_the_architecture; i++) {
        int bits = of_the_architecture[i].bits;
        if ((flags & bits) == bits) {
            flags &= ~bits;
            strcat(names, of_the_architecture[i].name);
        }
    }
    snprintf(text, sizeof text, "0%o%s", (unsigned)flags, names);
    return text;
}

void opened(const char *interface, const char *kind, int fd, int after)
{
    char note[200] = "";
    struct stat st;
    if (fd >= 0) {
        int flags = fcntl(fd, F_GETFL), descriptor = fcntl(fd, F_GETFD);
        if (fstat(fd, &st) != 0)
            broken("fstat");
        int writes = S_ISREG(st.st_mode) && !(flags & O_PATH) && (flags & O_ACCMODE) != O_RDONLY;
        snprintf(note, sizeof note, "sync=%s flags=%s cloexec=%d mode=0%o owner=%u:%u size=%lld position=%lld wrote=%d",
                 sync_bits(flags), flags_text(flags), descriptor & FD_CLOEXEC, st.st_mode,
                 st.st_uid, st.st_gid, (long long)(S_ISREG(st.st_mode) ? st.st_size : 0),
                 (long long)lseek(fd, 0, SEEK_CUR), writes ? (int)write(fd, "x", 1) : 0);
    }
    cell(interface, kind, fd, after, note);
    if (fd >= 0)
        close(fd);
}
