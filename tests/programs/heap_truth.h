/* What a program has allocated, by its own account. Neither counts nor prints by means of malloc. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct block { size_t size, usable; };

static unsigned long allocations, frees, bytes, requested, usable, live;

#define ADD(to, n) __atomic_fetch_add(&to, (n), __ATOMIC_SEQ_CST)

static inline void fail(const char *what) {
    char line[100];
    int n = snprintf(line, sizeof line, "%s went wrong (%d)\n", what, errno);
    if (write(2, line, (size_t)n) != n) _exit(2);
    _exit(1);
}

static inline struct block look(void *at, size_t size) {
    return (struct block){size, malloc_usable_size(at)};
}

static inline void gave(void *at, size_t size) {
    ADD(allocations, 1); ADD(bytes, size); ADD(requested, size); ADD(usable, malloc_usable_size(at)); ADD(live, 1);
}

/* What was looked at before. */
static inline void took(struct block block) {
    ADD(frees, 1); ADD(requested, -block.size); ADD(usable, -block.usable); ADD(live, -1);
}

static inline void report(void) {
    char line[200];
    int n = snprintf(line, sizeof line, "%lu %lu %lu %lu %lu %lu\n", allocations, frees, bytes, requested, usable, live);
    if (write(1, line, (size_t)n) != n) fail("write");
}
