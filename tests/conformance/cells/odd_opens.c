// Opens with O_SYNC or O_DSYNC where there is something odd about them, each through every door.
#define _GNU_SOURCE
#include "opened.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CLOSED = 900 };

static char long_name[4200];
static char by_descriptor[32], by_dev_fd[32], by_thread[40];

static struct {
    const char *kind;
    const char *path;
    int flags;
    mode_t mode;
} cases[] = {
    {"creates", "created", O_RDWR | O_CREAT | O_EXCL | O_SYNC, 0765},
    {"exists", "created", O_RDWR | O_CREAT | O_EXCL | O_SYNC, 0600},
    {"creates_unless_there", "created", O_RDWR | O_CREAT | O_DSYNC, 0600},
    {"creates_setgid", "setgid", O_RDWR | O_CREAT | O_DSYNC, 02775},
    {"creates_readonly", "unwritable", O_RDWR | O_CREAT | O_SYNC, 0400},
    {"creates_in_missing", "missing/created", O_RDWR | O_CREAT | O_SYNC, 0600},
    {"creates_behind_dangling", "dangling", O_RDWR | O_CREAT | O_SYNC, 0600},
    {"unnamed", ".", O_RDWR | O_TMPFILE | O_SYNC, 0765},
    {"unnamed_in_a_file", "file", O_RDWR | O_TMPFILE | O_SYNC, 0600},
    {"missing", "missing", O_RDWR | O_SYNC, 0},
    {"no_name", "", O_RDWR | O_SYNC, 0},
    {"long_name", long_name, O_RDWR | O_SYNC, 0},
    {"behind_a_file", "file/name", O_RDWR | O_SYNC, 0},
    {"directory_to_write", ".", O_RDWR | O_DSYNC, 0},
    {"directory_to_read", ".", O_RDONLY | O_DIRECTORY | O_SYNC, 0},
    {"file_as_directory", "file", O_RDONLY | O_DIRECTORY | O_SYNC, 0},
    {"link", "link", O_RDWR | O_SYNC, 0},
    {"link_not_followed", "link", O_RDWR | O_NOFOLLOW | O_SYNC, 0},
    {"not_followed", "file", O_RDWR | O_NOFOLLOW | O_SYNC, 0},
    {"loop", "loop", O_RDWR | O_SYNC, 0},
    {"dangling", "dangling", O_RDWR | O_SYNC, 0},
    {"path_only", "file", O_PATH | O_SYNC, 0},
    {"append", "file", O_WRONLY | O_APPEND | O_SYNC, 0},
    {"truncate", "file", O_RDWR | O_TRUNC | O_DSYNC, 0},
    {"cloexec", "file", O_RDWR | O_CLOEXEC | O_SYNC, 0},
    {"nonblock", "file", O_RDWR | O_NONBLOCK | O_SYNC, 0},
    {"noatime", "file", O_RDWR | O_NOATIME | O_DSYNC, 0},
    {"both_access_bits", "file", O_RDWR | O_WRONLY | O_SYNC, 0},
    {"own_descriptor", by_descriptor, O_RDWR | O_SYNC, 0},
    {"own_descriptor_dev", by_dev_fd, O_RDWR | O_SYNC, 0},
    {"own_descriptor_thread", by_thread, O_RDWR | O_DSYNC, 0},
    {"own_executable", "/proc/self/exe", O_RDONLY | O_SYNC, 0},
    {"own_executable_to_write", "/proc/self/exe", O_RDWR | O_SYNC, 0},
    {"own_directory", "/proc/self/cwd/file", O_RDWR | O_SYNC, 0},
    {"no_terminal", "/dev/tty", O_RDWR | O_SYNC, 0},
    {"dev_null", "/dev/null", O_RDWR | O_SYNC, 0},
    {"dev_null_direct", "/dev/null", O_RDWR | O_DIRECT | O_SYNC, 0},
    {"fifo_packets", "fifo", O_RDWR | O_DIRECT | O_SYNC, 0},
    {"fifo_without_reader", "fifo", O_WRONLY | O_NONBLOCK | O_SYNC, 0},
    {"unreadable_pointer", NULL, O_RDWR | O_SYNC, 0},
};

static void at_each_door(void)
{
    for (size_t door = 0; door < door_count; door++) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            // The C libraries' own names declare that the path is none.
            const char *path = cases[i].path ? cases[i].path : (const char *)1;
            OPENED(doors[door].name, cases[i].kind,
                   doors[door].open(AT_FDCWD, path, cases[i].flags, cases[i].mode));
        }
        remove("created");
        remove("setgid");
        remove("unwritable");
        remove("nowhere");
    }
}

static void in_another_directory(void)
{
    must(mkdir("sub", 0700), "sub");
    int sub = must(open("sub", O_RDONLY | O_DIRECTORY), "sub"), file = must(open("file", O_RDONLY), "file");
    for (size_t door = 0; door < door_count; door++) {
        const char *name = doors[door].name;
        if (!doors[door].takes_directory)
            continue;
        OPENED(name, "in_directory", doors[door].open(sub, "inner", O_RDWR | O_CREAT | O_SYNC, 0640));
        OPENED(name, "up_from_directory", doors[door].open(sub, "../file", O_RDWR | O_DSYNC, 0));
        OPENED(name, "in_a_file", doors[door].open(file, "inner", O_RDWR | O_SYNC, 0));
        OPENED(name, "in_closed", doors[door].open(CLOSED, "inner", O_RDWR | O_SYNC, 0));
        OPENED(name, "closed_but_absolute", doors[door].open(CLOSED, "/dev/null", O_RDWR | O_SYNC, 0));
    }
    close(sub);
    close(file);
}

static void without_a_free_descriptor(void)
{
    struct rlimit limit, none;
    int lowest = must(dup(0), "dup");
    close(lowest);
    getrlimit(RLIMIT_NOFILE, &limit);
    none = limit;
    none.rlim_cur = (rlim_t)lowest;
    for (size_t door = 0; door < door_count; door++) {
        setrlimit(RLIMIT_NOFILE, &none);
        errno = KEPT;
        int fd = doors[door].open(AT_FDCWD, "file", O_RDWR | O_SYNC, 0), after = errno;
        setrlimit(RLIMIT_NOFILE, &limit);
        opened(doors[door].name, "no_free_descriptor", fd, after);
    }
}

// Its working directory and its umask are this thread's own.
static void *alone(void *unused)
{
    must(unshare(CLONE_FS), "unshare");
    must(mkdir("own", 0700), "own");
    must(chdir("own"), "own");
    umask(077);
    for (size_t door = 0; door < door_count; door++) {
        OPENED(doors[door].name, "threads_own_directory",
               doors[door].open(AT_FDCWD, "thread-made", O_RDWR | O_CREAT | O_EXCL | O_SYNC, 0666));
        remove("thread-made");
    }
    return unused;
}

static void *writes_fifo(void *which)
{
    const struct door *door = which;
    errno = KEPT;
    int fd = door->open(AT_FDCWD, "fifo", O_WRONLY | O_SYNC, 0), after = errno;
    // Which of the two ends has the lower number is chance.
    opened(door->name, "waits_for_reader", fd < 0 ? fd : fcntl(fd, F_DUPFD, 100), after);
    close(fd);
    return NULL;
}

static void in_threads(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, alone, NULL) != 0)
        broken("thread");
    pthread_join(thread, NULL);
    OPENED("open", "main_threads_directory", open("thread-made", O_RDWR | O_SYNC));
    for (size_t door = 0; door < door_count; door++) {
        if (pthread_create(&thread, NULL, writes_fifo, (void *)(uintptr_t)&doors[door]) != 0)
            broken("thread");
        int reader = must(open("fifo", O_RDONLY), "fifo");
        pthread_join(thread, NULL);
        close(reader);
    }
}

// A struct of a later kernel: larger, its tail all zeros (which is fine) or not (E2BIG).
struct larger_how {
    struct open_how how;
    unsigned long long tail[4];
};

static long by_how(unsigned long long flags, unsigned long long mode, unsigned long long resolve,
                   unsigned long long tail, size_t size)
{
    struct larger_how larger = {.how = {.flags = flags, .mode = mode, .resolve = resolve}, .tail = {tail}};
    return syscall(SYS_openat2, AT_FDCWD, "file", &larger, size);
}

static void by_odd_structs(void)
{
    static char huge[1 << 20];
    static const char name[] = "syscall_openat2";
    const size_t size = sizeof(struct open_how);
    OPENED(name, "unknown_flag", by_how(O_RDWR | O_SYNC | 1ull << 40, 0, 0, 0, size));
    OPENED(name, "unknown_resolve", by_how(O_RDWR | O_SYNC, 0, 1ull << 40, 0, size));
    OPENED(name, "mode_without_create", by_how(O_RDWR | O_SYNC, 0600, 0, 0, size));
    OPENED(name, "huge_mode", by_how(O_RDWR | O_CREAT | O_SYNC, 1u << 20, 0, 0, size));
    OPENED(name, "beneath", by_how(O_RDWR | O_SYNC, 0, RESOLVE_BENEATH, 0, size));
    OPENED(name, "no_links", by_how(O_RDWR | O_DSYNC, 0, RESOLVE_NO_SYMLINKS, 0, size));
    OPENED(name, "small", by_how(O_RDWR | O_SYNC, 0, 0, 0, 8));
    OPENED(name, "larger", by_how(O_RDWR | O_SYNC, 0, 0, 0, size + 8));
    OPENED(name, "largest", by_how(O_RDWR | O_DSYNC, 0, 0, 0, size + 32));
    OPENED(name, "unknown_tail", by_how(O_RDWR | O_SYNC, 0, 0, 1, size + 8));
    OPENED(name, "huge", syscall(SYS_openat2, AT_FDCWD, "file", huge, sizeof huge));
    OPENED(name, "unreadable_how", syscall(SYS_openat2, AT_FDCWD, "file", 1L, size));
    OPENED(name, "unreadable_size", syscall(SYS_openat2, AT_FDCWD, "file", 1L, -1L));
}

// F_SETFL ignores the sync bits (fcntl(2)); on a FIFO O_DIRECT means packets.
static void set_flags(const char *kind, const char *path, int flags)
{
    int fd = must(open(path, O_RDWR), path);
    char note[120];
    errno = KEPT;
    int result = fcntl(fd, F_SETFL, flags), after = errno;
    int now = fcntl(fd, F_GETFL);
    snprintf(note, sizeof note, "sync=%s flags=%s", now & O_SYNC ? "set" : "none", flags_text(now));
    cell("fcntl_setfl", kind, result, after, note);
    close(fd);
}

void odd_open_cells(void)
{
    char template[] = "not-a-template";
    if (mkfifo("fifo", 0600) != 0 || symlink("loop", "loop") != 0 || symlink("file", "link") != 0 ||
        symlink("nowhere", "dangling") != 0)
        broken("the odd files");
    memset(long_name, 'n', sizeof long_name - 1);
    int fd = must(open("file", O_RDWR), "file");
    snprintf(by_descriptor, sizeof by_descriptor, "/proc/self/fd/%d", fd);
    snprintf(by_dev_fd, sizeof by_dev_fd, "/dev/fd/%d", fd);
    snprintf(by_thread, sizeof by_thread, "/proc/thread-self/fd/%d", fd);
    umask(027);
    at_each_door();
    in_another_directory();
    without_a_free_descriptor();
    in_threads();
    by_odd_structs();
    OPENED("mkostemp", "not_a_template", mkostemp(template, O_SYNC));
    set_flags("sync", "file", O_SYNC);
    set_flags("fifo_packets", "fifo", O_DIRECT);
    set_flags("dev_null_direct", "/dev/null", O_DIRECT);
}
