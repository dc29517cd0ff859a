// fsyncs argv[1]; installed setgid by the tests, where the dynamic linker ignores LD_PRELOAD.
// Prints `secure=0|1 egid=N`.
#include <fcntl.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0644) : -1;
    if (fd < 0 || write(fd, "x", 1) != 1 || fsync(fd) != 0) {
        perror("setgid_helper");
        return 1;
    }
    printf("secure=%lu egid=%u\n", getauxval(AT_SECURE), (unsigned)getegid());
    return 0;
}
