/* heap_fork N: allocates N blocks and forks. The child frees half of them and allocates twice as many others, so that
 * it has the larger heap; the parent frees all of its own. Each prints what is to be counted for itself; of the child
 * that is what it inherited and what it did. The child is killed in the end. */
#include <signal.h>
#include <sys/wait.h>

#include "heap_truth.h"

#define BLOCKS 100000

static void *blocks[BLOCKS];

static void allocate(long from, long to) {
    for (long i = from; i < to; i++) {
        size_t size = (size_t)i % 900;
        blocks[i] = malloc(size);
        if (!blocks[i]) fail("malloc");
        gave(blocks[i], size);
    }
}

static void release(long from, long to) {
    for (long i = from; i < to; i++) {
        took(look(blocks[i], (size_t)i % 900));
        free(blocks[i]);
    }
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 0;
    if (3 * n > BLOCKS) return 2;
    allocate(0, n);
    pid_t child = fork();
    if (child == 0) {
        allocations = frees = bytes = 0;
        release(0, n / 2);
        allocate(n, 3 * n);
        report();
        kill(getpid(), SIGKILL);
    }
    waitpid(child, NULL, 0);
    release(0, n);
    report();
    return 0;
}
