// argv: N FILE. Raises SIGUSR1 N times; the handler fsyncs FILE. Exit 1 when an fsync failed or errno was touched.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static int fd;
static volatile sig_atomic_t good;

static void handler(int signal)
{
    (void)signal;
    errno = 99;
    if (fsync(fd) == 0 && errno == 99)
        good++;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int times = atoi(argv[1]);
    fd = open(argv[2], O_RDWR | O_CREAT, 0644);
    if (signal(SIGUSR1, handler) == SIG_ERR)
        return 2;
    for (int i = 0; i < times; i++)
        raise(SIGUSR1);
    return good != times;
}
