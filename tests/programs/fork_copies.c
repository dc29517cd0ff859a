// fork_copies PAGES BY_PARENT BY_CHILD: fills PAGES pages, forks two children, of which each writes to another BY_CHILD of
// them, and then writes to BY_PARENT of the rest. Prints a line when all is done, and stays; its
// children end with it.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PAGE 4096UL

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    size_t pages = strtoul(argv[1], NULL, 10), by_parent = strtoul(argv[2], NULL, 10);
    size_t by_child = strtoul(argv[3], NULL, 10);
    // A compiler may leave out what is written to memory that nobody reads: GCC 15 does.
    char *volatile memory = aligned_alloc(PAGE, pages * PAGE);
    int ready[2];
    if (memory == NULL || pipe(ready) != 0)
        return 1;
    memset(memory, 1, pages * PAGE);
    for (size_t child = 0; child < 2; child++) {
        pid_t pid = fork();
        if (pid < 0)
            return 1;
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (size_t i = 0; i < by_child; i++)
                memory[(child * by_child + i) * PAGE] = 2;
            if (write(ready[1], "x", 1) != 1)
                return 1;
            for (;;)
                pause();
        }
    }
    char done;
    if (read(ready[0], &done, 1) != 1 || read(ready[0], &done, 1) != 1)
        return 1;
    for (size_t i = 0; i < by_parent; i++)
        memory[(2 * by_child + i) * PAGE] = 3;
    puts("forked");
    fflush(stdout);
    for (;;)
        pause();
}
