// build: -pthread
// Memory that grows for one known reason: memory_kinds KIND SEED [FILE]. For each line of input it does some
// operations, then prints how many it has done so far and the truth: the bytes that each term has grown by. Sizes
// come from the seed, which it prints first with its own process id. All kinds allocate and free beside it, as
// programs do.
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096UL
#define HUGE (2UL << 20)

static uint64_t state;
static unsigned long operations, live, internal, external, retained, stacks, mapped, cached, copied, untouched;
static size_t size; // what an operation is about, in bytes
static char *area;  // for what copies, and for huge pages
static size_t area_used;
static int file = -1;
static sem_t stack_is_filled;

static uint64_t below(uint64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

static void *filled(void *block, size_t bytes)
{
    if (block == NULL || block == MAP_FAILED) {
        perror("memory_kinds");
        exit(1);
    }
    memset(block, 0x5a, bytes);
    return block;
}

// What every program does: blocks of all sizes come and go, about a level.
static void others(void)
{
    static void *ring[64];
    static size_t next;
    size_t bytes = 16 + below(8000);
    free(ring[next % 64]);
    ring[next++ % 64] = filled(malloc(bytes), bytes);
}

static void none(void)
{
}

static void leak(void)
{
    size_t bytes = size / 2 + below(size);
    void *volatile lost = filled(malloc(bytes), bytes);
    (void)lost;
    live += bytes;
}

// The same to the eye: but it is all still needed.
static void logical(void)
{
    struct entry {
        struct entry *next;
    };
    static struct entry *entries;
    size_t bytes = sizeof *entries + size / 2 + below(size);
    struct entry *entry = filled(malloc(bytes), bytes);
    entry->next = entries;
    entries = entry;
    live += bytes;
}

// Six bytes each, for which allocators use more.
static void waste(void)
{
    for (size_t done = 0; done < size; done += 24) {
        void *volatile block = filled(malloc(6), 6);
        live += 6;
        internal += malloc_usable_size(block) - 6;
    }
}

// Blocks that shrink where they are leave holes that are too small for those after them. Each hole is large enough for
// any block of the other kind: those would otherwise be placed above, and leave room for blocks of this kind when they
// are freed, so that less and less is lost. Some holes hold other blocks at any time, so that resident memory grows by
// 0.88 to 1.0 of this truth (200 seeds).
static void leave_holes(size_t bytes)
{
    char *blocks[16];
    for (int i = 0; i < 16; i++)
        blocks[i] = filled(malloc(bytes), bytes);
    for (int i = 0; i < 15; i++) {
        char *volatile kept = realloc(blocks[i], 40);
        (void)kept;
        live += 40;
        external += bytes - 40;
    }
    live += bytes;
}

static void fragments(void)
{
    static size_t more;
    leave_holes(8200 + size / 8 + 16 * more++);
}

// The same with holes that are smaller than a page: on each page lies something that lives.
static void holes(void)
{
    static size_t more;
    leave_holes(600 + 4 * more++);
}

// Each operation needs more than the one before for a moment, and a block above it keeps what was freed from going back.
static void keeps(void)
{
    static void *above;
    static size_t count;
    size_t bytes = 60000;
    void **blocks = malloc((count + size / 8192 + 1) * sizeof *blocks);
    count += size / 8192 + 1;
    for (size_t i = 0; i < count; i++)
        blocks[i] = filled(malloc(bytes), bytes);
    void *pin = filled(malloc(100000), 100000);
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    free(blocks);
    free(above);
    above = pin;
    retained = count * bytes;
}

static void *thread(void *bytes)
{
    size_t deep = (size_t)bytes;
    filled(__builtin_alloca(deep), deep);
    sem_post(&stack_is_filled);
    while (pause() < 0) {
    }
    return NULL;
}

static void threads(void)
{
    pthread_t id;
    if (pthread_create(&id, NULL, thread, (void *)size) != 0)
        exit(1);
    sem_wait(&stack_is_filled);
    stacks += size;
}

static void maps(void)
{
    size_t bytes = (size + below(size)) / PAGE * PAGE + PAGE;
    filled(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes);
    mapped += bytes;
}

static void file_maps(void)
{
    size_t bytes = size / PAGE * PAGE + PAGE;
    if (ftruncate(file, cached + bytes) != 0)
        exit(1);
    filled(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, cached), bytes);
    cached += bytes;
}

static void copies(void)
{
    size_t bytes = size / PAGE * PAGE + PAGE;
    filled(area + area_used, bytes);
    area_used += bytes;
    copied += bytes;
}

static void huge(void)
{
    area[area_used] = 1;
    area_used += HUGE;
    untouched += HUGE - PAGE;
}

static const struct {
    const char *name;
    void (*operation)(void);
    unsigned most; // operations at once
} KINDS[] = {
    {"none", none, 40}, {"leak", leak, 40},       {"logical", logical, 40}, {"internal", waste, 12},
    {"external", fragments, 6}, {"holes", holes, 10}, {"retained", keeps, 2}, {"stacks", threads, 8}, {"maps", maps, 10},
    {"file", file_maps, 10}, {"cow", copies, 10}, {"thp", huge, 1},
};

int main(int argc, char **argv)
{
    size_t kind = 0;
    while (argc > 2 && kind < sizeof KINDS / sizeof *KINDS && strcmp(argv[1], KINDS[kind].name) != 0)
        kind++;
    if (argc < 3 || kind == sizeof KINDS / sizeof *KINDS) {
        fprintf(stderr, "usage: memory_kinds KIND SEED [FILE]\n");
        return 2;
    }
    state = strtoull(argv[2], NULL, 10) * 2654435769UL + 88172645463325252UL;
    size = 16384 + below(49152);
    if (argc > 3 && (file = open(argv[3], O_RDWR | O_CREAT | O_TRUNC, 0600)) < 0)
        return 1;
    if (KINDS[kind].operation == copies || KINDS[kind].operation == huge) {
        size_t bytes = 256UL << 20;
        area = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (area == MAP_FAILED)
            return 1;
        area += HUGE - (uintptr_t)area % HUGE;
        madvise(area, bytes, KINDS[kind].operation == huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    }
    if (KINDS[kind].operation == copies) {
        filled(area, 64UL << 20);
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child > 0) // what it shares stays shared
            return waitpid(child, NULL, 0) < 0;
    }
    printf("seed %s size %zu pid %d\n", argv[2], size, (int)getpid());
    fflush(stdout);
    while (getchar() != EOF) {
        unsigned now = 1 + (unsigned)below(KINDS[kind].most);
        for (unsigned i = 0; i < now; i++) {
            for (int j = 0; j < 8; j++)
                others();
            KINDS[kind].operation();
            operations++;
        }
        printf("%lu live=%lu internal=%lu external=%lu retained=%lu stacks=%lu maps=%lu file=%lu cow=%lu thp=%lu\n",
               operations, live, internal, external, retained, stacks, mapped, cached, copied, untouched);
        fflush(stdout);
    }
    return 0;
}
