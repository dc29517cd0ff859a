// build: -static -pthread
// argv: THREADS FILE. Each thread fsyncs until standard input ends, while all of them get signals whose handler
// does not restart system calls. Prints `calls N enosys N eintr N other N`: what the calls returned.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *file;
static volatile int stop;
static unsigned long calls, enosys, eintr, other;

static void handled(int signal)
{
    (void)signal;
}

static void count(unsigned long *what)
{
    __atomic_fetch_add(what, 1, __ATOMIC_RELAXED);
}

static void *sync_on(void *unused)
{
    (void)unused;
    int fd = open(file, O_WRONLY | O_CREAT, 0644);
    if (fd < 0)
        abort();
    while (!stop) {
        int result = fsync(fd);
        count(&calls);
        if (result != 0)
            count(errno == ENOSYS ? &enosys : errno == EINTR ? &eintr : &other);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    int n = argc == 3 ? atoi(argv[1]) : 0;
    if (n < 1 || n > 64)
        return 2;
    file = argv[2];
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handled}, NULL);
    for (int i = 0; i < n; i++) {
        if (pthread_create(&threads[i], NULL, sync_on, NULL) != 0)
            return 1;
    }
    printf("ready\n");
    fflush(stdout);
    struct pollfd end = {.fd = 0, .events = POLLIN};
    for (int i = 0; poll(&end, 1, 5) == 0; i++)
        pthread_kill(threads[i % n], SIGUSR1);
    stop = 1;
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    printf("calls %lu enosys %lu eintr %lu other %lu\n", calls, enosys, eintr, other);
    return 0;
}
