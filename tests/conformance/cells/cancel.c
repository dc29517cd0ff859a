// Which calls are cancellation points: a thread with a cancellation already pending makes each call once.
// Result: 1 where the thread was cancelled, 0 where the call returned.
#define _GNU_SOURCE
#include "cell.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fd;
static void *mapping;
static pthread_barrier_t ready, go;

static void do_fsync(void) { (void)fsync(fd); }
static void do_fdatasync(void) { (void)fdatasync(fd); }
static void do_syncfs(void) { (void)syncfs(fd); }
static void do_sync(void) { sync(); }
static void do_sync_file_range(void) { (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE); }
static void do_msync(void) { (void)msync(mapping, 4096, MS_SYNC); }
static void do_open(void) { (void)open("file", O_RDWR | O_SYNC); }
static void do_openat(void) { (void)openat(AT_FDCWD, "file", O_RDWR | O_DSYNC); }
static void do_syscall(void) { (void)syscall(SYS_fsync, fd); }

static const struct {
    const char *name;
    void (*call)(void);
} calls[] = {
    {"fsync", do_fsync},
    {"fdatasync", do_fdatasync},
    {"syncfs", do_syncfs},
    {"sync", do_sync},
    {"sync_file_range", do_sync_file_range},
    {"msync", do_msync},
    {"open", do_open},
    {"openat", do_openat},
    {"syscall_fsync", do_syscall},
};

static void *thread(void *which)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&go); // the cancellation is pending from here on
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    calls[(size_t)which].call();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return NULL;
}

void cancel_cells(void)
{
    fd = must(open("file", O_RDWR), "file");
    must(ftruncate(fd, 4096), "ftruncate");
    mapping = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pthread_barrier_init(&ready, NULL, 2);
    pthread_barrier_init(&go, NULL, 2);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        pthread_t id;
        void *result;
        if (pthread_create(&id, NULL, thread, (void *)i) != 0)
            broken("thread");
        pthread_barrier_wait(&ready);
        pthread_cancel(id);
        pthread_barrier_wait(&go);
        pthread_join(id, &result);
        cell(calls[i].name, "cancellation_pending", result == PTHREAD_CANCELED, KEPT, "");
    }
}
