// argv: DIRECTORY. Mounts a FUSE file system on the directory, in mounts of its own, whose server answers no read. A
// child calls openat2 with its flags in a page of a file there. This process meanwhile calls fsync on a file of its
// own 100 times. Ends with 77 where FUSE is not allowed, and with 3 where the child's call ended before those.
#define _GNU_SOURCE
#include "stuck_fuse.h"
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    int own = open("own", O_WRONLY | O_CREAT, 0600), fd = stuck_file(argv[1]);
    if (fd < 0)
        return 77;
    char *page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        syscall(SYS_openat2, AT_FDCWD, "nothing", page, 24);
        _exit(0);
    }
    while (!*was_read)
        sched_yield();
    for (int i = 0; i < 100; i++)
        fsync(own);
    int waits = waitpid(child, NULL, WNOHANG) == 0;
    kill(child, SIGKILL);
    kill(server, SIGKILL);
    return waits ? 0 : 3;
}
