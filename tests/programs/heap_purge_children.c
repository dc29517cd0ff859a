// build: -pthread
// A program with fragments that watches itself closely: heap_purge_children HOW. It goes on until its input ends.
// HOW: waits    starts one child after the other, waits for any until there is none, counts SIGCHLD and its descriptors;
//               prints how many of each, and how many waits found anything but its own children
//      filter   the same, beneath a seccomp filter of its own that allows everything
//      threads  the same, with 1000 more threads, of which four allocate and free all the time
//      user     the same, beneath RLIMIT_NPROC; root has no such limit
//      ends     the same, and SIGALRM ends it after so many milliseconds as the next argument has
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t signals;

static void count(int number)
{
    (void)number;
    signals++;
}

static void crash(int number)
{
    (void)number;
    static const char text[] = "a handler of the program ran\n";
    write(1, text, sizeof text - 1);
    _exit(3);
}

// The lowest that is free.
static int descriptor(void)
{
    int found = dup(0);
    close(found);
    return found;
}

static void *nothing(void *unused)
{
    pause();
    return unused;
}

#define BUSY 4

static pthread_t busy[BUSY];
static atomic_int is_over;

static void *allocate(void *unused)
{
    for (unsigned n = 1; !is_over; n = n * 1103515245 + 12345) {
        void *volatile block = malloc(100 + (n >> 16) % 3000);
        free(block);
        if (n % 256 == 0)
            usleep(1000); // the processors are others' too
    }
    return unused;
}

static int set_apart(const char *how)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {1, &allow};
    struct rlimit one = {1, 1};
    pthread_attr_t small;
    pthread_t id;
    switch (how[0]) {
    case 'f':
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    case 'u':
        return setrlimit(RLIMIT_NPROC, &one);
    case 't':
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 64 << 10);
        for (int i = 0; i < 1000; i++)
            if (pthread_create(i < BUSY ? &busy[i] : &id, &small, i < BUSY ? allocate : nothing, NULL) != 0)
                return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    signal(SIGSEGV, crash);
    struct sigaction action = {.sa_handler = count};
    sigaction(SIGCHLD, &action, NULL);
    static void *blocks[2000];
    for (int i = 0; i < 2000; i++)
        blocks[i] = memset(malloc(20000), 1, 20000);
    for (int i = 0; i < 1990; i++)
        free(blocks[i]);
    int before = descriptor();
    if (set_apart(argv[1]) != 0) {
        perror("heap_purge_children");
        return 1;
    }
    printf("ready\n");
    fflush(stdout);
    long started = 0, reaped = 0, strange = 0;
    if (argc == 3)
        ualarm((useconds_t)atoi(argv[2]) * 1000, 0);
    struct pollfd input = {.fd = 0, .events = POLLIN};
    for (;;) {
        if (poll(&input, 1, 1) > 0)
            break;
        void *volatile block = malloc(8 << 10);
        free(block);
        pid_t child = fork();
        if (child == 0)
            _exit(7);
        started += child > 0;
        int status;
        pid_t found;
        while ((found = wait(&status)) > 0 || errno == EINTR) {
            if (found < 0)
                continue;
            reaped++;
            strange += found != child || status != 7 << 8;
        }
        strange += errno != ECHILD;
    }
    // A sample of the heap opens a descriptor for a moment.
    is_over = 1;
    for (int i = 0; i < BUSY && busy[i]; i++)
        pthread_join(busy[i], NULL);
    printf("started=%ld reaped=%ld signals=%ld strange=%ld descriptors=%d\n", started, reaped, (long)signals, strange,
           descriptor() - before);
    return 0;
}
