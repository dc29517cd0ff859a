// Allocates until malloc fails, and prints the bytes it got: heap_limit BYTES, a limit of its own, or 0.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static uint64_t below(uint64_t *state, uint64_t limit)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % limit;
}

int main(int argc, char **argv)
{
    static char buffer[1000];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    if (argc != 2)
        return 2;
    struct rlimit limit = {strtoul(argv[1], NULL, 10), RLIM_INFINITY};
    if (limit.rlim_cur && setrlimit(RLIMIT_AS, &limit) != 0)
        return 3;
    uint64_t state = 88172645463325252;
    unsigned long got = 0;
    for (;;) {
        size_t size = 1 + below(&state, below(&state, 40) == 0 ? 40000 : 1000);
        char *volatile block = malloc(size);
        if (block == NULL)
            break;
        block[0] = 1;
        got += size;
    }
    printf("%lu\n", got);
    return 0;
}
