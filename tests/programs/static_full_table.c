// build: -static
// Opens descriptors until there are no more, then argv[1] with O_SYNC and O_TRUNC; prints the errno.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>

int main(int argc, char **argv)
{
    const struct rlimit few = {64, 64};
    if (argc != 2 || setrlimit(RLIMIT_NOFILE, &few) != 0)
        return 2;
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
    int fd = open(argv[1], O_WRONLY | O_TRUNC | O_SYNC);
    printf("errno=%d\n", fd < 0 ? errno : 0);
    return 0;
}
