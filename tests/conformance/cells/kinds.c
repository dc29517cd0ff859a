// One descriptor of each kind.
#define _GNU_SOURCE
#include "cell.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

static struct kind kinds[40];
static size_t count;

static void exact(const char *name, int fd)
{
    kinds[count++] = (struct kind){name, fd};
}

static void add(const char *name, int fd)
{
    exact(name, must(fd, name));
}

const struct kind *all_kinds(size_t *how_many)
{
    int ends[2];
    sigset_t none;
    sigemptyset(&none);
    add("regular_rdwr", open("file", O_RDWR));
    add("regular_rdonly", open("file", O_RDONLY));
    add("regular_wronly", open("file", O_WRONLY));
    add("regular_unlinked", open(".", O_TMPFILE | O_RDWR, 0600));
    add("directory", open(".", O_RDONLY | O_DIRECTORY));
    add("memfd", memfd_create("memfd", 0));
    add("tmpfs_file", open("/dev/shm", O_TMPFILE | O_RDWR, 0600));
    add("sysfs_file", open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY));
    add("path_file", open("file", O_PATH));
    add("path_directory", open(".", O_PATH));
    exact("closed", 900);
    exact("minus_one", -1);
    exact("int_min", INT_MIN);
    must(pipe(ends), "pipe");
    add("pipe_read", ends[0]);
    add("pipe_write", ends[1]);
    must(mkfifo("fifo", 0600), "mkfifo");
    add("fifo", open("fifo", O_RDWR));
    add("socket_unix", socket(AF_UNIX, SOCK_STREAM, 0));
    add("socket_inet", socket(AF_INET, SOCK_STREAM, 0));
    add("eventfd", eventfd(0, 0));
    add("epoll", epoll_create1(0));
    add("timerfd", timerfd_create(CLOCK_MONOTONIC, 0));
    add("signalfd", signalfd(-1, &none, 0));
    add("inotify", inotify_init());
    add("dev_null", open("/dev/null", O_RDWR));
    add("dev_zero", open("/dev/zero", O_RDWR));
    add("ptmx", open("/dev/ptmx", O_RDWR | O_NOCTTY));
    add("proc_file", open("/proc/self/status", O_RDONLY));
    add("proc_directory", open("/proc/self", O_RDONLY | O_DIRECTORY));
    add("pidfd", (int)syscall(SYS_pidfd_open, getpid(), 0));
    add("nsfs", open("/proc/self/ns/net", O_RDONLY));
    *how_many = count;
    return kinds;
}
