// build: -lrt
// FILE COUNT: gives up root, where it has it, and then makes COUNT calls of aio_fsync.
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int fd = argc == 3 ? open(argv[1], O_RDWR | O_CREAT, 0644) : -1;
    if (fd < 0 || (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0))
        return 2;
    for (int i = atoi(argv[2]); i > 0; i--) {
        struct aiocb block = {.aio_fildes = fd};
        const struct aiocb *list[] = {&block};
        if (pwrite(fd, "x", 1, 0) != 1 || aio_fsync(O_SYNC, &block) != 0)
            return 1;
        while (aio_error(&block) == EINPROGRESS)
            aio_suspend(list, 1, NULL);
        if (aio_return(&block) != 0)
            return 1;
    }
    return 0;
}
