// Makes each sync call by its name on argv[1], and prints what came of it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void tell(const char *what, int result)
{
    printf("%s: %d %s\n", what, result, result < 0 ? strerror(errno) : "");
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    int mapped = open("/virtual/conf", O_RDONLY);
    tell("mapped", mapped < 0 ? -1 : 0);
    int fd = open(argv[1], O_CREAT | O_RDWR, 0644);
    tell("fsync", fsync(fd));
    tell("fdatasync", fdatasync(fd));
    tell("fdatasync of the library's own", fdatasync(1000));
    tell("syncfs", syncfs(fd));
    tell("syncfs of the library's own", syncfs(1000));
    tell("sync_file_range", sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
    tell("sync_file_range of the library's own", sync_file_range(1000, 3, 4, SYNC_FILE_RANGE_WRITE));
    tell("msync", msync(&fd, 1, MS_SYNC));
    tell("msync of nothing", msync(NULL, 1, MS_ASYNC));
    errno = 0;
    sync();
    printf("sync: %s\n", strerror(errno));
    return 0;
}
