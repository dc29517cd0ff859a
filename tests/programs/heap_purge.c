// A heap of which a known part can be given back: heap_purge SEED HOW. Prints how many bytes were freed, and then frees
// and allocates a block again and again until its input ends; then has the allocator give back what it can, and prints
// by how much that made the process smaller.
// HOW: pages   of large blocks most are freed, each run of them held in place by a block that stays
//      pinned  of small blocks most are freed, and some stay on every page: nothing can be given back
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static uint64_t below(uint64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

static char *filled(size_t bytes)
{
    char *block = malloc(bytes);
    if (block == NULL)
        exit(1);
    return memset(block, 0x5a, bytes);
}

static long anonymous(void)
{
    char line[256];
    long kib = 0;
    FILE *rollup = fopen("/proc/self/smaps_rollup", "r");
    while (rollup && fgets(line, sizeof line, rollup))
        sscanf(line, "Anonymous: %ld", &kib);
    fclose(rollup);
    return kib << 10;
}

static void purge(void)
{
    int (*mallctl)(const char *, void *, size_t *, void *, size_t) = dlsym(RTLD_DEFAULT, "mallctl");
    void (*collect)(_Bool) = dlsym(RTLD_DEFAULT, "mi_collect");
    void (*release)(void) = dlsym(RTLD_DEFAULT, "MallocExtension_ReleaseFreeMemory");
    if (mallctl)
        mallctl("arena.4096.purge", NULL, NULL, NULL, 0);
    else if (collect)
        collect(1);
    else if (release)
        release();
    else
        malloc_trim(0);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: heap_purge SEED pages|pinned\n");
        return 2;
    }
    state = strtoull(argv[1], NULL, 10) * 2654435769UL + 88172645463325252UL;
    int is_pinned = strcmp(argv[2], "pinned") == 0;
    size_t bytes = is_pinned ? 256 : 64 << 10;
    size_t count = ((size_t)64 << 20) / bytes;
    count += below(count);
    char **blocks = malloc(count * sizeof *blocks);
    for (size_t i = 0; i < count; i++)
        blocks[i] = filled(bytes);
    unsigned long freed = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_pinned ? i % 8 == 0 : i % 50 == 49)
            continue;
        free(blocks[i]);
        freed += bytes;
    }
    printf("freed=%lu\n", freed);
    fflush(stdout);
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (poll(&input, 1, 1) == 0) {
        char *volatile block = filled(8 << 10);
        free(block);
    }
    long before = anonymous();
    purge();
    printf("given_back=%ld\n", before - anonymous());
    return 0;
}
