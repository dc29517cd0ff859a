// argv: N FILE. Maps one page of FILE, and N times changes it and msyncs it with MS_SYNC.
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int fd = argc == 3 ? open(argv[2], O_RDWR | O_CREAT, 0644) : -1;
    if (fd < 0 || ftruncate(fd, 4096) != 0)
        return 2;
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return 2;
    for (int i = atoi(argv[1]); i > 0; i--) {
        page[i % 4096]++;
        if (msync(page, 4096, MS_SYNC) != 0) {
            perror("msync");
            return 1;
        }
    }
    return 0;
}
