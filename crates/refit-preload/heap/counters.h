/* Counts of what is allocated: see heap_page.h. */
#ifndef REFIT_HEAP_COUNTERS_H
#define REFIT_HEAP_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "block.h"
#include "field.h"
#include "heap_page.h"
#include "own_counters.h"
#include "prim.h"
#include "settle.h"

/* Maps the private counters; 0 when that fails. */
int refit_heap_map_counters(void);

/* Begins to write to the file, of which refit_heap tells the parts that are mapped. */
void refit_heap_publish(struct refit_heap_file *file,
			struct refit_heap_mark *mark);

/* Frees a thread's slot when it ends. Called in the constructor. */
void refit_heap_watch_threads(void);

enum refit_heap_change {
	REFIT_HEAP_GIVEN,
	REFIT_HEAP_TAKEN,
	/* An allocation that was counted was a part of another one. */
	REFIT_HEAP_RETRACTED,
};

/* Where this thread or process has no counters of its own yet. Not 0: the block is
 * to be kept as a sample. */
int refit_heap_change_anywhere(size_t requested, size_t usable,
				enum refit_heap_change change);

/* The same where there is no table of live blocks: of one that is taken back it is not
 * known what was requested (heap_page.h). */
int refit_heap_change_by_usable(size_t requested, size_t usable,
				enum refit_heap_change change);

/* A block of so many bytes was given out, or taken back. Not 0: it is to be kept as
 * a sample. */
static inline __attribute__((always_inline)) int
refit_heap_change(size_t requested, size_t usable, enum refit_heap_change change)
{
	ptrdiff_t distance = refit_heap.mark->distance;
	struct refit_heap_slot *slot = refit_heap_mine;
	if (UNLIKELY(!distance || !slot || slot->is_shared)) {
		return refit_heap_change_anywhere(requested, usable, change);
	}
	struct refit_heap_class *class =
		&slot->classes[refit_heap_class_of(requested)];
	uint64_t sign = change == REFIT_HEAP_GIVEN ? 1 : (uint64_t)-1;
	int is_due = 0;
	if (change == REFIT_HEAP_TAKEN) {
		refit_add_own(&class->frees, 1, distance);
	} else {
		refit_add_own(&class->allocations, sign, distance);
		refit_add_own(&slot->allocated, requested * sign, distance);
		is_due = refit_add_private(&slot->given,
					   refit_heap_given(usable) * sign) >=
			 slot->sample_at;
	}
	refit_add_own(&class->requested, requested * sign, distance);
	refit_add_own(&class->usable, usable * sign, distance);
	refit_add_private(&slot->pending_requested, requested * sign);
	refit_add_private(&slot->pending_blocks, sign);
	uint64_t pending =
		refit_add_private(&slot->pending_usable, usable * sign);
	if (UNLIKELY(refit_heap_is_unsettled(pending))) {
		refit_heap_settle(slot);
	}
	return is_due;
}

/* Changes with each allocation that this thread counts. */
uint64_t refit_heap_turn(void);

/* Adds 1 to a field of the process. */
void refit_heap_note_in_process(size_t field);
#define REFIT_HEAP_NOTE(name)                                                  \
	refit_heap_note_in_process(offsetof(struct refit_heap_process, name))

#endif
