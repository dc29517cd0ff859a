// aio_fsync on each kind, and how its completion is told.
#define _GNU_SOURCE
#include "cell.h"

#include <aio.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static sem_t told;

static void completed(const char *interface, const char *kind, int call, int after, struct aiocb *request)
{
    const struct aiocb *list[] = {request};
    char note[64] = "";
    if (call == 0) {
#ifndef __GLIBC__
        after = KEPT; // musl's own waiting leaves EAGAIN there now and then
#endif
        while (aio_error(request) == EINPROGRESS)
            aio_suspend(list, 1, NULL);
        int error = aio_error(request);
        snprintf(note, sizeof note, "error=%s return=%ld", error ? errno_name(error) : "0", (long)aio_return(request));
    }
    cell(interface, kind, call, after, note);
}

#define AIO(interface, kind, function, operation, request)                                                         \
    do {                                                                                                           \
        errno = KEPT;                                                                                              \
        int aio_call = function(operation, request), aio_errno = errno;                                            \
        completed(interface, kind, aio_call, aio_errno, (void *)(request));                                        \
    } while (0)

static void on_thread(union sigval value)
{
    (void)value;
    sem_post(&told);
}

static void told_by(int fd)
{
    sigset_t set;
    int received;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct aiocb by_signal = {.aio_fildes = fd};
    by_signal.aio_sigevent.sigev_notify = SIGEV_SIGNAL;
    by_signal.aio_sigevent.sigev_signo = SIGUSR1;
    errno = KEPT;
    int call = aio_fsync(O_DSYNC, &by_signal), after = errno;
    if (call == 0)
        sigwait(&set, &received);
    completed("aio_fsync", "told_by_signal", call, after, &by_signal);

    struct aiocb by_thread = {.aio_fildes = fd};
    by_thread.aio_sigevent.sigev_notify = SIGEV_THREAD;
    by_thread.aio_sigevent.sigev_notify_function = on_thread;
    sem_init(&told, 0, 0);
    errno = KEPT;
    call = aio_fsync(O_SYNC, &by_thread), after = errno;
    if (call == 0)
        sem_wait(&told);
    completed("aio_fsync", "told_by_thread", call, after, &by_thread);
}

void posix_aio_cells(void)
{
    size_t count;
    const struct kind *kinds = all_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        struct aiocb request = {.aio_fildes = kinds[i].fd, .aio_sigevent.sigev_notify = SIGEV_NONE};
        AIO("aio_fsync", kinds[i].name, aio_fsync, O_SYNC, &request);
        AIO("aio_fsync_data", kinds[i].name, aio_fsync, O_DSYNC, &request);
    }
    struct aiocb request = {.aio_fildes = kinds[0].fd, .aio_sigevent.sigev_notify = SIGEV_NONE};
    AIO("aio_fsync", "unknown_operation", aio_fsync, 7, &request);
#ifdef __GLIBC__
    struct aiocb64 large = {.aio_fildes = kinds[0].fd, .aio_sigevent.sigev_notify = SIGEV_NONE};
    AIO("aio_fsync64", kinds[0].name, aio_fsync64, O_SYNC, &large);
#endif
    told_by(kinds[0].fd);
}
