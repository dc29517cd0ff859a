/* heap_sequence N [X]: makes N steps that follow from their number alone, in which every function of malloc(3) occurs and
 * some (without X) fail on purpose, and prints what is to be counted for them: allocations, frees, bytes ever requested, and bytes
 * requested, bytes usable and blocks that are live in the end. Fails when a block is not aligned, has lost its content,
 * or a success touched errno. */
#include "heap_truth.h"

#define BLOCKS 500

static struct { char *at; size_t size; } blocks[BLOCKS];
static int may_fail = 1;
static unsigned long state = 0x9e3779b97f4a7c15ul;

static unsigned long draw(unsigned long below) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return state % below;
}

static void keep(int i, void *at, size_t size, size_t alignment) {
    if (!at || errno != 77 || (unsigned long)at % alignment) fail("allocation");
    gave(at, size);
    blocks[i].at = at; blocks[i].size = size;
    memset(at, i & 127, size);
}

static void holds(int i, size_t size) {
    for (size_t k = 0; k < size; k++) if (blocks[i].at[k] != (i & 127)) fail("content");
}

static void change(int i, size_t size) {
    struct block before = look(blocks[i].at, blocks[i].size);
    volatile size_t much = (size_t)1 << 60;
    if (draw(4) == 0 && may_fail) {
        if (realloc(blocks[i].at, much) || errno != ENOMEM) fail("a realloc that cannot be");
        errno = 77;
    }
    void *at = draw(2) ? realloc(blocks[i].at, size) : reallocarray(blocks[i].at, size, 1);
    took(before);
    size_t old = blocks[i].size;
    blocks[i].at = at;
    if (at) holds(i, old < size ? old : size);
    keep(i, at, size, sizeof(void *));
}

int main(int argc, char **argv) {
    long steps = argc > 1 ? atol(argv[1]) : 0;
    may_fail = argc < 3;
    /* mimalloc looks at the machine when it is first called, and errno is what it finds then. */
    void *volatile first = malloc(5000);
    free(first);
    for (long step = 0; step < steps; step++) {
        int i = (int)draw(BLOCKS);
        size_t size = draw(50) == 0 ? draw(3000000) + 1 : draw(10) == 0 ? draw(9000) + 1 : draw(130) + (draw(9) != 0);
        void *at = NULL;
        errno = 77;
        if (blocks[i].at) {
            holds(i, blocks[i].size);
            if (size && draw(3) == 0) { change(i, size); continue; }
            took(look(blocks[i].at, blocks[i].size));
            free(blocks[i].at);
            if (errno != 77) fail("free");
            blocks[i].at = NULL;
            continue;
        }
        switch (draw(9)) {
        case 0: at = calloc(size, 1); keep(i, at, size, sizeof(void *)); break;
        case 1: keep(i, realloc(NULL, size), size, sizeof(void *)); break;
        case 2: if (posix_memalign(&at, 256, size)) fail("posix_memalign"); keep(i, at, size, 256); break;
        case 3: size = (size / 64 + 1) * 64; keep(i, aligned_alloc(64, size), size, 64); break;
        case 4: size++; keep(i, memalign(4096, size), size, 4096); break;
        case 5: size++; keep(i, valloc(size), size, 4096); break;
        default: keep(i, malloc(size), size, size >= 16 ? 16 : 8); break;
        }
    }
    report();
    return 0;
}
