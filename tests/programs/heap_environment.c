/* heap_environment N: allocates and frees N blocks in the middle of a change of its environment, as bash does: an entry
 * is gone, and the new one is not there yet. Prints what is to be counted. */
#include "heap_truth.h"

extern char **environ;

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 0;
    char *gone = (char *)sysconf(_SC_PAGESIZE) - 1, *changing[] = {gone, NULL};
    char **before = environ;
    environ = changing;
    void *kept = NULL;
    for (long i = 0; i < n; i++) {
        size_t size = (size_t)(i * 7919 + 100) % 300000;
        void *block = malloc(size);
        if (!block) fail("malloc");
        gave(block, size);
        if (i == 0) {
            kept = block;
            continue;
        }
        took(look(block, size));
        free(block);
    }
    environ = before;
    report();
    return kept == NULL && n > 0;
}
