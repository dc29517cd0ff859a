// FILE: what io_submit answers to an FDSYNC of a file that is open for neither reading nor writing, access mode 3, and
// then the completion's result.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    aio_context_t context = 0;
    int fd = argc == 2 ? open(argv[1], O_CREAT | O_ACCMODE, 0600) : -1;
    struct iocb one = {.aio_fildes = (uint32_t)fd, .aio_lio_opcode = IOCB_CMD_FDSYNC};
    struct iocb *all[] = {&one};
    struct io_event done = {.res = 1};
    if (fd < 0 || syscall(SYS_io_setup, 1, &context) != 0)
        return 2;
    long submitted = syscall(SYS_io_submit, context, 1L, all);
    int why = submitted < 0 ? errno : 0;
    if (submitted == 1)
        syscall(SYS_io_getevents, context, 1L, 1L, &done, NULL);
    printf("%ld %d %lld\n", submitted, why, (long long)done.res);
    return 0;
}
