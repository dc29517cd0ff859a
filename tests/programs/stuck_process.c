// argv: DIRECTORY. Becomes a process of the user nobody whose loader's list of what it has loaded continues in a page
// that cannot be read: of a file of a FUSE file system, mounted on the directory, whose server does not answer. Then it
// prints `ready` and waits for the end of its input. Ends with 77 where FUSE is not allowed.
#define _GNU_SOURCE
#include "stuck_fuse.h"
#include <grp.h>
#include <link.h>
#include <signal.h>
#include <sys/prctl.h>

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    int fd = stuck_file(argv[1]);
    if (fd < 0)
        return 77;
    void *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    if (page == MAP_FAILED || setgroups(0, NULL) != 0 || setresgid(65534, 65534, 65534) != 0 ||
        setresuid(65534, 65534, 65534) != 0)
        return 1;
    prctl(PR_SET_DUMPABLE, 1);
    _r_debug.r_map->l_next = page;
    dprintf(1, "ready\n");
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    // exit(3) would walk along the list.
    kill(getpid(), SIGKILL);
}
