/* A twin of the process, in which the allocator gives back what it can: so refit learns how much that is, and the
 * program itself keeps all of it. */
#ifndef REFIT_HEAP_TWIN_H
#define REFIT_HEAP_TWIN_H

#include "field.h"
#include "own_counters.h"

/* The number of the request that was answered last. */
extern HIDDEN uint32_t refit_twin_answered;

/* Makes the twin that refit has asked for. */
void refit_twin_make(struct refit_heap_twin *twin);

/* Call it now and then, where no function of the allocator is running. */
static inline void refit_twin_look(void)
{
	ptrdiff_t distance = refit_heap.mark->distance;
	if (UNLIKELY(!distance)) {
		return;
	}
	struct refit_heap_twin *twin = (struct refit_heap_twin *)refit_elsewhere(
		&refit_heap.own->process.twin, distance);
	if (UNLIKELY(__atomic_load_n(&twin->asked, __ATOMIC_ACQUIRE) !=
		     __atomic_load_n(&refit_twin_answered, __ATOMIC_RELAXED))) {
		refit_twin_make(twin);
	}
}

#endif
