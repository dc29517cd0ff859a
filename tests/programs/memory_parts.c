// build: -pthread
// Resident memory of many known parts at once: memory_parts SEED FILE. Sizes come from the seed; with the seed 0 there are
// none of them. Prints the truth in bytes, one line of `term=bytes`, and stays until its input ends.
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((unsigned long)getpagesize())
#define MIB (1UL << 20)

static uint64_t state;
static int is_none;
static unsigned long live, rounding, headers, fragments, retained, stacks, mappings, files, shared, untouched;
static pthread_barrier_t barrier;
static size_t deep;

static uint64_t below(uint64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

// From `least` up to twice as much; nothing with the seed 0.
static size_t some(size_t least)
{
    size_t found = least + below(least);
    return is_none ? 0 : found;
}

static void *filled(void *block, size_t bytes)
{
    if (block == NULL || block == MAP_FAILED) {
        perror("memory_parts");
        exit(1);
    }
    return memset(block, 0x5a, bytes);
}

// Of what follows a byte in use, the bytes on its page, and on further pages that are there. Those are never touched, but
// the allocator may have had them in use before.
static size_t resident(uintptr_t at, uintptr_t end)
{
    size_t found = 0;
    for (size_t bytes; at < end; at += bytes) {
        unsigned char is_there = 1;
        bytes = PAGE - at % PAGE < end - at ? PAGE - at % PAGE : end - at;
        if (at % PAGE == 0 && mincore((void *)at, PAGE, &is_there) < 0) {
            perror("memory_parts: mincore");
            exit(1);
        }
        found += is_there & 1 ? bytes : 0;
    }
    return found;
}

// A block that stays.
static void *keep(size_t bytes)
{
    char *block = filled(malloc(bytes), bytes);
    size_t usable = malloc_usable_size(block);
    __atomic_fetch_add(&live, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&rounding, resident((uintptr_t)block + bytes, (uintptr_t)block + usable), __ATOMIC_RELAXED);
    // glibc's: a block of at least 128 KiB has a mapping of its own.
    __atomic_fetch_add(&headers, bytes < 128 << 10 ? 8 : 16, __ATOMIC_RELAXED);
    return block;
}

static void blocks_of_all_sizes(size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        size_t size = 16 + below(below(50) == 0 ? 300000 : 4000);
        void *volatile block = keep(size);
        (void)block;
        done += size;
    }
}

static void blocks_of_six_bytes(size_t count)
{
    while (count-- > 0) {
        void *volatile block = keep(6);
        (void)block;
    }
}

// Every other block is freed: no larger one fits into the holes.
static void holes(size_t count)
{
    char **blocks = filled(mmap(NULL, (count + 1) * sizeof *blocks, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                           count * sizeof *blocks);
    mappings += ((count + 1) * sizeof *blocks + PAGE - 1) / PAGE * PAGE;
    for (size_t i = 0; i < count; i++)
        blocks[i] = i % 2 ? filled(malloc(1000), 1000) : keep(1000);
    for (size_t i = 1; i < count; i += 2) {
        free(blocks[i]);
        fragments += 1008;
    }
}

static void freed_below_a_block(size_t count)
{
    void **blocks = filled(mmap(NULL, (count + 1) * sizeof *blocks, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                           count * sizeof *blocks);
    mappings += ((count + 1) * sizeof *blocks + PAGE - 1) / PAGE * PAGE;
    for (size_t i = 0; i < count; i++)
        blocks[i] = filled(malloc(60000), 60000);
    void *volatile above = keep(100000);
    (void)above;
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
        retained += 60016;
    }
}

static void *thread(void *unused)
{
    (void)unused;
    filled(__builtin_alloca(deep), deep);
    for (int i = 0; i < 1000; i++) {
        void *volatile block = keep(3000);
        (void)block;
    }
    pthread_barrier_wait(&barrier);
    pause();
    return NULL;
}

static void threads(unsigned count)
{
    deep = some(MIB / 2);
    pthread_barrier_init(&barrier, NULL, count + 1);
    for (unsigned i = 0; i < count; i++) {
        pthread_t id;
        if (pthread_create(&id, NULL, thread, NULL) != 0)
            exit(1);
    }
    pthread_barrier_wait(&barrier);
    stacks = count * deep;
}

static void *mapped(size_t bytes, int flags, int fd)
{
    if (bytes == 0)
        return NULL;
    return filled(mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0), bytes);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: memory_parts SEED FILE\n");
        return 2;
    }
    state = strtoull(argv[1], NULL, 10) * 2654435769UL + 88172645463325252UL;
    is_none = strcmp(argv[1], "0") == 0;
    int file = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    // Each thread has an arena of its own, also on one processor: none takes from what is freed below.
    mallopt(M_ARENA_MAX, 32);
    // First: malloc looks among what is free before it maps, and some seeds free more than this takes.
    untouched = some(32 * MIB);
    char *volatile large = malloc(untouched);
    (void)large;
    blocks_of_all_sizes(some(16 * MIB));
    blocks_of_six_bytes(some(300000));
    holes(some(20000));
    if (!is_none)
        freed_below_a_block(some(300));
    threads((unsigned)some(8));
    for (size_t count = some(100); count-- > 0;) {
        size_t bytes = (1 + below(64)) * PAGE;
        mapped(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
        mappings += bytes;
    }
    files = some(16 * MIB) / PAGE * PAGE;
    if (file < 0 || ftruncate(file, (off_t)files) != 0)
        return 1;
    mapped(files, MAP_SHARED, file);
    shared = some(8 * MIB) / PAGE * PAGE;
    mapped(shared, MAP_SHARED | MAP_ANONYMOUS, -1);
    printf("live=%lu rounding=%lu headers=%lu fragments=%lu retained=%lu stacks=%lu mappings=%lu files=%lu shared=%lu "
           "untouched=%lu\n",
           live, rounding, headers, fragments, retained, stacks, mappings, files, shared, untouched);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
