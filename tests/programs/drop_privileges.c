// argv: FILE [COMMAND…] Becomes uid and gid 65534 (root only), fsyncs FILE, then execs COMMAND, if there is one.
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2 || setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0) {
        perror("drop_privileges");
        return 2;
    }
    int fd = open(argv[1], O_RDWR | O_CREAT, 0644);
    if (fd < 0 || write(fd, "x", 1) != 1 || fsync(fd) != 0) {
        perror(argv[1]);
        return 1;
    }
    if (argc == 2)
        return 0;
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
