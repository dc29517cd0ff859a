// build: -lrt
// aio_fsync of argv[1] with SIGEV_NONE, waited for by aio_suspend; with SIGEV_SIGNAL, waited for by sigwait; and
// of a bad descriptor. One line each: `case call=R error=E return=R`.
#define _DEFAULT_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

static void finish(const char *name, int call, struct aiocb *request)
{
    const struct aiocb *list[] = {request};
    if (call != 0) {
        printf("%s call=%d error=%d return=-\n", name, call, errno);
        return;
    }
    while (aio_error(request) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    int error = aio_error(request);
    printf("%s call=0 error=%d return=%zd\n", name, error, aio_return(request));
}

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0644) : -1, received;
    sigset_t set;
    if (fd < 0)
        return 2;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);

    struct aiocb quiet = {.aio_fildes = fd, .aio_sigevent.sigev_notify = SIGEV_NONE};
    finish("suspend", aio_fsync(O_SYNC, &quiet), &quiet);

    struct aiocb loud = {.aio_fildes = fd};
    loud.aio_sigevent.sigev_notify = SIGEV_SIGNAL;
    loud.aio_sigevent.sigev_signo = SIGUSR1;
    int call = aio_fsync(O_DSYNC, &loud);
    if (call == 0)
        sigwait(&set, &received);
    finish("signal", call, &loud);

    struct aiocb bad = {.aio_fildes = 900, .aio_sigevent.sigev_notify = SIGEV_NONE};
    finish("bad_descriptor", aio_fsync(O_SYNC, &bad), &bad);
    return 0;
}
