// build: -pthread
/* heap_threads T N: T threads at once allocate N blocks each; every second block is freed by the next thread, and
 * more threads do the same after the first ones ended. Prints what is to be counted, as heap_sequence does. */
#include <pthread.h>

#include "heap_truth.h"

#define THREADS 64
#define BLOCKS 20000

static struct { void *at; size_t size; } blocks[THREADS][BLOCKS];
static pthread_barrier_t all;
static long threads, each;

static void *work(void *number) {
    long me = (long)number, next = (me + 1) % threads;
    pthread_barrier_wait(&all);
    for (long i = 0; i < each; i++) {
        size_t size = (size_t)(me * 7 + i) % 700 + 1;
        blocks[me][i].size = size;
        blocks[me][i].at = malloc(size);
        if (!blocks[me][i].at) fail("malloc");
        gave(blocks[me][i].at, size);
    }
    pthread_barrier_wait(&all);
    for (long i = 0; i < each; i += 2) {
        took(look(blocks[next][i].at, blocks[next][i].size));
        free(blocks[next][i].at);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    threads = atol(argv[1]); each = atol(argv[2]);
    pthread_t started[THREADS];
    for (int round = 0; round < 2; round++) {
        pthread_barrier_init(&all, NULL, (unsigned)threads);
        for (long i = 0; i < threads; i++) pthread_create(&started[i], NULL, work, (void *)i);
        for (long i = 0; i < threads; i++) pthread_join(started[i], NULL);
    }
    report();
    return 0;
}
