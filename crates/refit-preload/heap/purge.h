/* A copy of the process, made by a fork, in which the allocator gives back what it can: so refit learns how much that is,
 * and the program itself keeps all of it. */
#ifndef REFIT_HEAP_PURGE_H
#define REFIT_HEAP_PURGE_H

#include "field.h"
#include "own_counters.h"

/* The number of the request that was answered last. */
extern HIDDEN uint32_t refit_purge_answered;

/* Makes the copy that refit has asked for. */
void refit_purge_fork(struct refit_heap_purge *copy);

/* Call it now and then, where no function of the allocator is running. */
static inline void refit_purge_look(void)
{
	ptrdiff_t distance = refit_heap.mark->distance;
	if (UNLIKELY(!distance)) {
		return;
	}
	struct refit_heap_purge *copy = (struct refit_heap_purge *)refit_elsewhere(
		&refit_heap.own->process.purge, distance);
	if (UNLIKELY(__atomic_load_n(&copy->asked, __ATOMIC_ACQUIRE) !=
		     __atomic_load_n(&refit_purge_answered, __ATOMIC_RELAXED))) {
		refit_purge_fork(copy);
	}
}

#endif
