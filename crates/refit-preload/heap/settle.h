/* The live size of the process: what threads allocate and free is added to it now and then, and
 * not each time. */
#ifndef REFIT_HEAP_SETTLE_H
#define REFIT_HEAP_SETTLE_H

#include <stdint.h>

#include "heap_page.h"

/* Adds what is pending in a slot, and what this thread has pending otherwise, to the size of
 * the process. */
void refit_heap_settle(struct refit_heap_slot *slot);

/* Whether so much is pending that the size of the process is to be told. */
static inline int refit_heap_is_unsettled(uint64_t pending)
{
	const uint64_t most = REFIT_HEAP_LAG / 2;
	return pending + (most - 1) > 2 * (most - 1);
}

#endif
