// Changes its root to directory argv[1] (root only), then fsyncs /f there.
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 2 || chroot(argv[1]) != 0 || chdir("/") != 0) {
        perror("chroot");
        return 2;
    }
    int fd = open("/f", O_RDWR | O_CREAT, 0644);
    if (fd < 0 || write(fd, "x", 1) != 1 || fsync(fd) != 0) {
        perror("/f");
        return 1;
    }
    return 0;
}
