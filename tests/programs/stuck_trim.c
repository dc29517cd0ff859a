// build: -shared -fPIC
// An allocator whose malloc_trim never returns, or crashes where STUCK_TRIM is set.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static char room[256 << 20] __attribute__((aligned(4096)));
static size_t used;

void *malloc(size_t size)
{
    size_t whole = (size + 16 + 15) & ~(size_t)15;
    size_t at = __atomic_fetch_add(&used, whole, __ATOMIC_RELAXED);
    if (whole < size || at + whole > sizeof room)
        return NULL;
    memcpy(room + at, &size, sizeof size);
    return room + at + 16;
}

void free(void *block)
{
    (void)block;
}

size_t malloc_usable_size(void *block)
{
    size_t size = 0;
    if (block)
        memcpy(&size, (char *)block - 16, sizeof size);
    return size;
}

void *calloc(size_t number, size_t size)
{
    return malloc(number * size);
}

void *realloc(void *block, size_t size)
{
    size_t had = malloc_usable_size(block);
    void *moved = malloc(size);
    return moved && block ? memcpy(moved, block, had < size ? had : size) : moved;
}

int malloc_trim(size_t pad)
{
    (void)pad;
    while (!getenv("STUCK_TRIM")) {
    }
    return *(volatile int *)(uintptr_t)pad;
}
