/* The sizes of one block of the program, and where they count. */
#ifndef REFIT_HEAP_BLOCK_H
#define REFIT_HEAP_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "beneath.h"
#include "heap_page.h"
#include "prim.h"

struct refit_block {
	size_t requested;
	size_t usable; /* 0: no such block */
};

/* What is counted as usable. */
static inline size_t refit_heap_counts(struct refit_block block)
{
	return UNLIKELY(refit_beneath.hides_usable) ? block.requested
						    : block.usable;
}

/* Which class requests of so many bytes are counted in. */
static inline unsigned refit_heap_class_of(size_t size)
{
	if (LIKELY(size <= REFIT_HEAP_FINE_BYTES)) {
		return (unsigned)((size - (size != 0)) >> 3);
	}
	uint64_t last = size - 1;
	unsigned power = 63u - (unsigned)__builtin_clzll(last);
	unsigned class = REFIT_HEAP_FINE_CLASSES + (power - 9) * 4 +
			 ((unsigned)(last >> (power - 2)) & 3);
	return class < REFIT_HEAP_CLASSES ? class : REFIT_HEAP_CLASSES - 1;
}

/* How far an allocation of so many usable bytes counts on: never nothing. */
static inline uint64_t refit_heap_given(size_t usable)
{
	return usable ? usable : 1;
}

#endif
