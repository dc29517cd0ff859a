// Spends its time as it is told, one part after the other, and prints what each of its threads and processes did and
// for how long: lines `ACTIVITY NANOSECONDS`, as refit calls them. What it did on a processor is not printed but for cpu.
//   time_truth PORT PART:MS…
// PORT: of a server on 127.0.0.1 that answers each line `MS` so many milliseconds later.
// cpu · timer · sync (fsync in a loop) · network (recv) · poll (network, by poll) · epoll (network, by epoll) · pipe (from a child that sleeps) ·
// child (one that sleeps) · lock (of a thread that sleeps) · thread (a condition) · idle (a listening socket) · flock
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int port, is_set;
// What a child slept, where its parent reads it.
static int64_t *slept;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void say(const char *activity, int64_t nanoseconds)
{
    printf("%s %lld\n", activity, (long long)nanoseconds);
}

static void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    int64_t began = now(CLOCK_MONOTONIC);
    while (nanosleep(&time, &time) != 0)
        continue;
    *slept = now(CLOCK_MONOTONIC) - began;
}

static int connected(long ms)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char line[32];
    int length = snprintf(line, sizeof line, "%ld\n", ms);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0 || write(fd, line, (size_t)length) != length)
        fail("connect");
    return fd;
}

static void *hold(void *ms)
{
    pthread_mutex_lock(&mutex);
    is_set = 1;
    sleep_ms((long)(intptr_t)ms);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *signal_later(void *ms)
{
    sleep_ms((long)(intptr_t)ms);
    pthread_mutex_lock(&mutex);
    is_set = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void wait_for_child(pid_t pid)
{
    if (pid < 0 || waitpid(pid, NULL, 0) != pid)
        fail("waitpid");
}

// The part's name as refit calls it; what else slept meanwhile is in *slept.
static const char *spend(const char *part, long ms)
{
    char byte;
    int fd, pipes[2];
    pthread_t thread;
    pid_t pid;
    *slept = 0;
    if (strcmp(part, "cpu") == 0) {
        int64_t until = now(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000;
        while (now(CLOCK_THREAD_CPUTIME_ID) < until)
            continue;
        return "cpu";
    }
    if (strcmp(part, "sync") == 0) {
        int64_t until = now(CLOCK_MONOTONIC) + ms * 1000000;
        char name[] = "time_truth.XXXXXX";
        fd = mkstemp(name);
        while (now(CLOCK_MONOTONIC) < until)
            if (pwrite(fd, "", 1, 0) != 1 || fsync(fd) != 0)
                fail(name);
        unlink(name);
        close(fd);
        return "sync";
    }
    if (strcmp(part, "timer") == 0) {
        sleep_ms(ms);
        *slept = 0;
        return "timer";
    }
    if (strcmp(part, "network") == 0 || strcmp(part, "poll") == 0 || strcmp(part, "epoll") == 0) {
        fd = connected(ms);
        if (strcmp(part, "poll") == 0) {
            struct pollfd entry = {.fd = fd, .events = POLLIN};
            poll(&entry, 1, 60000);
        } else if (strcmp(part, "epoll") == 0) {
            struct epoll_event event = {.events = EPOLLIN};
            int epoll = epoll_create1(EPOLL_CLOEXEC);
            epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
            epoll_wait(epoll, &event, 1, 60000);
            close(epoll);
        }
        if (recv(fd, &byte, 1, 0) != 1)
            fail("recv");
        close(fd);
        return "network";
    }
    if (strcmp(part, "pipe") == 0) {
        if (pipe(pipes) != 0)
            fail("pipe");
        if ((pid = fork()) == 0) {
            sleep_ms(ms);
            _exit(write(pipes[1], "", 1) != 1);
        }
        if (read(pipes[0], &byte, 1) != 1)
            fail("read");
        wait_for_child(pid);
        close(pipes[0]);
        close(pipes[1]);
        return "pipe";
    }
    if (strcmp(part, "child") == 0) {
        if ((pid = fork()) == 0) {
            sleep_ms(ms);
            _exit(0);
        }
        wait_for_child(pid);
        return "child";
    }
    is_set = 0;
    if (strcmp(part, "lock") == 0) {
        if (pthread_create(&thread, NULL, hold, (void *)(intptr_t)ms) != 0)
            fail("pthread_create");
        while (!__atomic_load_n(&is_set, __ATOMIC_ACQUIRE))
            sched_yield();
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        pthread_join(thread, NULL);
        return "lock";
    }
    if (strcmp(part, "thread") == 0) {
        if (pthread_create(&thread, NULL, signal_later, (void *)(intptr_t)ms) != 0)
            fail("pthread_create");
        pthread_mutex_lock(&mutex);
        while (!is_set)
            pthread_cond_wait(&condition, &mutex);
        pthread_mutex_unlock(&mutex);
        pthread_join(thread, NULL);
        return "thread";
    }
    if (strcmp(part, "idle") == 0) {
        struct pollfd entry = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .events = POLLIN};
        if (listen(entry.fd, 1) != 0)
            fail("listen");
        poll(&entry, 1, (int)ms);
        close(entry.fd);
        return "idle";
    }
    if (strcmp(part, "flock") == 0) {
        char path[] = "time_truth.XXXXXX";
        fd = mkstemp(path);
        if (fd < 0 || pipe(pipes) != 0)
            fail(path);
        if ((pid = fork()) == 0) {
            int own = open(path, O_RDWR | O_CLOEXEC);
            flock(own, LOCK_EX);
            if (write(pipes[1], "", 1) != 1)
                _exit(1);
            sleep_ms(ms);
            _exit(0);
        }
        if (read(pipes[0], &byte, 1) != 1)
            fail("read");
        flock(fd, LOCK_EX);
        wait_for_child(pid);
        unlink(path);
        close(fd);
        close(pipes[0]);
        close(pipes[1]);
        return "lock";
    }
    fprintf(stderr, "time_truth: no part %s\n", part);
    exit(2);
}

int main(int argc, char **argv)
{
    slept = mmap(NULL, sizeof *slept, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc < 3 || slept == MAP_FAILED)
        return 2;
    port = atoi(argv[1]);
    for (int i = 2; i < argc; i++) {
        char *colon = strchr(argv[i], ':');
        if (colon == NULL)
            return 2;
        *colon = 0;
        int64_t wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
        const char *activity = spend(argv[i], atol(colon + 1));
        wall = now(CLOCK_MONOTONIC) - wall;
        cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
        say(activity, strcmp(activity, "cpu") == 0 ? cpu : wall - cpu);
        if (*slept > 0)
            say("timer", *slept);
    }
    return 0;
}
