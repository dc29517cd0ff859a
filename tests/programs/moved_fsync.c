// argv: N FROM TO. Fsyncs FROM N times, renames it to TO, and fsyncs it N times more.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int syncs(int fd, int times)
{
    for (int i = 0; i < times; i++) {
        if (fsync(fd) != 0)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int times = argc == 4 ? atoi(argv[1]) : 0;
    int fd = times > 0 ? open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
    if (fd < 0)
        return 2;
    return syncs(fd, times) || rename(argv[2], argv[3]) || syncs(fd, times);
}
