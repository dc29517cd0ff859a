// Asks for a seccomp filter that the kernel refuses (a bad address), by prctl and by number, as libraries do to find
// out what the kernel supports; then writes argv[1] and calls fsync. Prints both errnos.
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int first = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) ? errno : 0;
    int second = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) ? errno : 0;
    printf("%d %d\n", first, second);
    int fd = argc == 2 ? open(argv[1], O_WRONLY | O_CREAT, 0600) : -1;
    return fd < 0 || write(fd, "x", 1) != 1 || fsync(fd) != 0;
}
