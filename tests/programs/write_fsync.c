// argv: N FILE. Writes 4 KiB and fsyncs, N times.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static const char block[4096];
    int times = argc == 3 ? atoi(argv[1]) : 0;
    int fd = times > 0 ? open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
    if (fd < 0)
        return 2;
    for (int i = 0; i < times; i++) {
        if (write(fd, block, sizeof block) != sizeof block || fsync(fd) != 0)
            return 1;
    }
    return 0;
}
