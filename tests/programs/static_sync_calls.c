// build: -static
// argv: FILE. Makes the file, and each sync call on it, then FILE.d as a directory; prints the name and the errno of
// each, 0 for success.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void told(const char *name, long result)
{
    printf("%s %d\n", name, result ? errno : 0);
}

int main(int argc, char **argv)
{
    char directory[4096];
    if (argc != 2 || strlen(argv[1]) > sizeof directory - 3)
        return 2;
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, "x", 1) != 1)
        return 1;
    told("fsync", fsync(fd));
    told("fdatasync", fdatasync(fd));
    told("sync_file_range", sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
    told("sync", syscall(SYS_sync));
    told("syncfs", syncfs(fd));
    strcpy(directory, argv[1]);
    told("mkdir", mkdir(strcat(directory, ".d"), 0755));
    return 0;
}
