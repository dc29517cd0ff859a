// A server that stands still for 100 ms at the beginning of each second of its clock, and a closed loop on it.
// serve SOCKET: each line is answered by a line. load SOCKET N: N lines, one after the other, each when the last one has
// been answered; prints how many took more than 50 ms, and the latency within which 99 % of them were answered.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 256, STALL_MS = 100 };

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int attached(const char *path, int (*attach)(int, const struct sockaddr *, socklen_t))
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    if (attach(fd, (struct sockaddr *)&address, sizeof address) != 0)
        fail(path);
    return fd;
}

// Sleeps to the end of a stall, where this is one.
static void stall(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_nsec < STALL_MS * 1000000L) {
        now.tv_nsec = STALL_MS * 1000000L;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &now, NULL);
    }
}

static void serve(const char *path)
{
    struct pollfd all[CONNECTIONS] = {{.fd = attached(path, bind), .events = POLLIN}};
    int count = 1;
    if (listen(all[0].fd, CONNECTIONS) != 0)
        fail("listen");
    for (;;) {
        if (poll(all, (nfds_t)count, -1) < 0)
            fail("poll");
        stall();
        for (int i = count - 1; i > 0; i--) {
            char lines[512];
            if (all[i].revents == 0)
                continue;
            ssize_t length = read(all[i].fd, lines, sizeof lines);
            for (ssize_t at = 0; at < length; at++)
                if (lines[at] == '\n' && write(all[i].fd, "pong\n", 5) != 5)
                    length = 0;
            if (length <= 0) {
                close(all[i].fd);
                all[i] = all[--count];
            }
        }
        if (all[0].revents != 0 && count < CONNECTIONS)
            all[count++] = (struct pollfd){.fd = accept(all[0].fd, NULL, NULL), .events = POLLIN};
    }
}

static int compare(const void *a, const void *b)
{
    long long x = *(const long long *)a, y = *(const long long *)b;
    return (x > y) - (x < y);
}

static void load(const char *path, int count)
{
    long long *took = calloc((size_t)count, sizeof *took);
    int fd = attached(path, connect), slow = 0;
    if (took == NULL)
        fail("calloc");
    for (int i = 0; i < count; i++) {
        char answer[16];
        long long began = now_ns();
        if (write(fd, "ping\n", 5) != 5 || read(fd, answer, sizeof answer) != 5)
            fail("the server");
        took[i] = now_ns() - began;
        slow += took[i] > 50000000;
    }
    qsort(took, (size_t)count, sizeof *took, compare);
    printf("slow %d\np99 %.3f\n", slow, (double)took[count * 99 / 100] / 1e6);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "serve") == 0)
        serve(argv[2]);
    else if (argc == 4 && strcmp(argv[1], "load") == 0)
        load(argv[2], atoi(argv[3]));
    else
        return 2;
    return 0;
}
