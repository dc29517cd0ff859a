// Opens argv[1], writes, fsyncs, closes. Exit 0 when each step succeeded.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    int fd = open(argv[1], O_RDWR | O_CREAT, 0644);
    if (fd < 0 || write(fd, "x", 1) != 1 || fsync(fd) != 0 || close(fd) != 0) {
        perror(argv[1]);
        return 1;
    }
    return 0;
}
