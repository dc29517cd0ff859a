/* What a thread counted by exact size (small.h) and has not yet added to the live size of the
 * process, in one word. From its lowest bit on: 22 bits of blocks, 22 bits of requested bytes,
 * 20 bits of usable bytes. Each is signed, and borrows from the next; usable bytes stand above
 * those of REFIT_PENDING_NOTHING. */
#ifndef REFIT_HEAP_PENDING_H
#define REFIT_HEAP_PENDING_H

#include <stddef.h>
#include <stdint.h>

#include "heap_page.h"

/* Where it begins; as many bits further on usable begins. */
#define REFIT_PENDING_REQUESTED 22
#define REFIT_PENDING_USABLE (2 * REFIT_PENDING_REQUESTED)
/* At most half of REFIT_HEAP_LAG_MOST usable bytes may be pending: from this bit on there is
 * a 1 then. */
#define REFIT_PENDING_RANGE (REFIT_PENDING_USABLE + 15)
#define REFIT_PENDING_NOTHING                                                  \
	((uint64_t)(REFIT_HEAP_LAG_MOST + REFIT_HEAP_LAG_MOST / 2)             \
	 << REFIT_PENDING_USABLE)

/* Of one block. */
static inline uint64_t refit_pending_change(size_t requested, size_t usable)
{
	uint64_t both = ((uint64_t)usable << REFIT_PENDING_REQUESTED) + requested;
	return (both << REFIT_PENDING_REQUESTED) + 1;
}

/* Its numbers are signed. */
struct refit_heap_size refit_pending_unpack(uint64_t pending);

/* Takes what this thread has pending. */
struct refit_heap_size refit_pending_take(void);

#endif
