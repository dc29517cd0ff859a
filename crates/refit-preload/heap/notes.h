/* What the functions that give out and take back blocks have in common. */
#ifndef REFIT_HEAP_NOTES_H
#define REFIT_HEAP_NOTES_H

#include <stddef.h>
#include <stdint.h>

#include "beneath.h"
#include "counters.h"
#include "give_up.h"
#include "heap.h"
#include "prim.h"

static inline int refit_heap_state_now(void)
{
	return __atomic_load_n(&refit_heap_state, __ATOMIC_ACQUIRE);
}

static inline int refit_heap_is_ready(void)
{
	return LIKELY(refit_heap_state_now() >= REFIT_HEAP_OFF) ||
	       refit_heap_is_found();
}

/* Of functions that call none of the others. */
#define REFIT_NO_TURN UINT64_MAX

/* A block was given out by a function that began at this turn (refit_heap_turn): where
 * it has changed, the function has called another one that noted the block too.
 * Returns the block; NULL is none. */
void *refit_note(void *block, size_t requested, uint64_t turn);

/* What the allocator gives now, if its failure can be our fault. */
#define REFIT_OR_AGAIN(block, size, call)                                      \
	(UNLIKELY(!(block)) &&                                                 \
			 refit_heap_state_now() >= REFIT_HEAP_COUNTING &&      \
			 refit_heap_give_up(size)                              \
		 ? (call)                                                      \
		 : (block))

/* Before the block is given back: afterwards it may be another thread's. */
void refit_forget(void *block);

#endif
