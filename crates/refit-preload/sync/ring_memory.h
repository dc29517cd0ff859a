/* The rings of own_ring.h, and where the program has mapped them. */
#ifndef REFIT_RING_MEMORY_H
#define REFIT_RING_MEMORY_H

#include <stddef.h>
#include <stdint.h>

enum fate { FREE, FOLLOWED, UNSEEN };

struct own_ring {
	int fd;
	int fate; /* enum fate */
	int submitted; /* at least once: no more counted as unseen */
	int busy;      /* a thread reads the queue */
	unsigned flags;
	unsigned entries;
	unsigned head, tail, array; /* offsets into the queue */
	uintptr_t thread;           /* that submits */
	char *queue;                /* NULL: not mapped */
	size_t queue_size;
	char *sqes;
	size_t sqes_size;
	char *completions;
	size_t completions_size;
};

#define REFIT_RINGS 32

/* In a page that a fork wipes: a child may not have the ring's memory
 * (MADV_DONTFORK). NULL before the first ring. */
extern struct own_ring *refit_rings;
_Static_assert(sizeof(struct own_ring) * REFIT_RINGS <= 4096,
	       "they fit in a page");

/* The ring of this descriptor; NULL where none is known. */
struct own_ring *refit_find_ring(int fd);

/* Whether memory of a ring is known to lie there. */
int refit_ring_lies_in(const void *at, size_t size);

/* Before memory is unmapped or moved: no ring lies there any more. */
void refit_forget_mapping(const void *at, size_t size);

#endif
