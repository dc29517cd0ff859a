// many_mappings COUNT PROCESSES: each process has about COUNT mappings, pages that may be read beside pages that may not,
// as many as vm.max_map_count allows. Prints how many one of them has, and stays until its input ends.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PAGE 4096UL

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    size_t count = strtoul(argv[1], NULL, 10), processes = strtoul(argv[2], NULL, 10);
    char *pages = mmap(NULL, count * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return 1;
    size_t made = 0;
    while (made + 2 < count && mprotect(pages + (made + 1) * PAGE, PAGE, PROT_READ) == 0)
        made += 2;
    for (size_t i = 1; i < processes; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return 1;
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                pause();
        }
    }
    printf("%zu\n", made);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
