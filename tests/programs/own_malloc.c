// build: -fno-builtin
// Exports a malloc family of its own (a bump allocator), lets libc allocate from it, then fsyncs argv[1].
// Prints `served N`: how many allocations its own family served.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Alignas(4096) char arena[64 << 20];
static size_t used, served;

void *aligned_alloc(size_t alignment, size_t size)
{
    size_t start;
    if (alignment < 16)
        alignment = 16;
    // One counter for all threads; the size is in the 16 bytes before the block.
    size_t room = size + alignment + 16;
    start = __atomic_fetch_add(&used, room, __ATOMIC_RELAXED) + 16;
    if (room < size || start + room > sizeof arena) {
        errno = ENOMEM;
        return NULL;
    }
    start = (start + alignment - 1) & ~(alignment - 1);
    memcpy(arena + start - sizeof size, &size, sizeof size);
    __atomic_fetch_add(&served, 1, __ATOMIC_RELAXED);
    return arena + start;
}

size_t malloc_usable_size(void *block)
{
    size_t size = 0;
    if (block != NULL)
        memcpy(&size, (char *)block - sizeof size, sizeof size);
    return size;
}

void *malloc(size_t size)
{
    return aligned_alloc(16, size);
}

void free(void *block)
{
    (void)block;
}

void *calloc(size_t count, size_t size)
{
    if (size != 0 && count > (size_t)-1 / size) {
        errno = ENOMEM;
        return NULL;
    }
    return aligned_alloc(16, count * size); // the arena is never reused, so it is still zero
}

void *realloc(void *block, size_t size)
{
    void *bigger = aligned_alloc(16, size);
    size_t had = malloc_usable_size(block);
    if (bigger != NULL && block != NULL)
        memcpy(bigger, block, had < size ? had : size);
    return bigger;
}

void *memalign(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = aligned_alloc(alignment, size);
    return *block == NULL ? ENOMEM : 0;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    free(strdup(argv[1]));
    FILE *stream = fopen(argv[1], "w"); // libc's own allocation
    if (stream == NULL || fputs("x", stream) == EOF || fflush(stream) != 0 || fsync(fileno(stream)) != 0) {
        perror(argv[1]);
        return 1;
    }
    printf("served %zu\n", served);
    return 0;
}
