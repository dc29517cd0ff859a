// What is live is of known functions: heap_leak MIB SEED. Of the bytes 80 % are leaked by mostly(), 20 % by rarely(); a
// third function allocates as much as both and frees all of it. Blocks have 16 to 2000 bytes. Prints what the two have
// leaked.
#ifdef __aarch64__
// Return addresses on its stack are signed, where the processor has pointer authentication.
#pragma GCC target("branch-protection=pac-ret")
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;
static size_t leaked[2];

static uint64_t below(uint64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

static __attribute__((noinline)) void *block(size_t bytes)
{
    char *made = malloc(bytes);
    if (made == NULL)
        exit(1);
    made[0] = 1;
    return made;
}

static __attribute__((noinline)) void mostly(size_t bytes)
{
    void *volatile lost = block(bytes);
    (void)lost;
    leaked[0] += bytes;
}

static __attribute__((noinline)) void rarely(size_t bytes)
{
    void *volatile lost = block(bytes);
    (void)lost;
    leaked[1] += bytes;
}

static __attribute__((noinline)) void passing(size_t bytes)
{
    static void *before[100];
    static size_t next;
    free(before[next % 100]);
    before[next++ % 100] = block(bytes);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    size_t end = strtoul(argv[1], NULL, 10) << 20;
    state = strtoull(argv[2], NULL, 10) * 2 + 1;
    while (leaked[0] + leaked[1] < end) {
        size_t bytes = 16 + below(1985);
        if (below(5) > 0)
            mostly(bytes);
        else
            rarely(bytes);
        passing(bytes);
    }
    printf("%zu %zu\n", leaked[0], leaked[1]);
    return 0;
}
