/* The slot of this process in the image file, and the counters in it. */
#ifndef REFIT_SLOT_H
#define REFIT_SLOT_H

#include "state.h"

/* Takes a slot for this process. */
struct refit_slot *refit_take_slot(uint32_t forked);

/* To be called in each child after fork. */
void refit_in_forked_child(void);

/* The counter of a call for this process, or NULL when nothing is counted. */
static inline struct refit_counter *refit_counter(enum refit_call call)
{
	if (UNLIKELY(!refit.image)) {
		return NULL;
	}
	struct refit_slot *slot = refit.mark->slot;
	if (UNLIKELY(!slot)) {
		slot = refit_take_slot(1);
	}
	return &slot->calls[call];
}

static inline void refit_not_suppressed(struct refit_counter *c)
{
	if (c) {
		refit_add(&c->not_suppressed, 1);
	}
}

void refit_suppressed_by_several(enum refit_call call);

/* A locked addition takes 5 ns, and is not needed in the slot that is nobody
 * else's while there is one thread: a vfork child's parent waits. A second
 * thread that was made by clone(2) alone may lose a count, as it would break the
 * C library's own malloc. */
static inline void refit_suppressed(enum refit_call call)
{
	struct refit_slot *slot = refit.mark->slot;
	if (LIKELY(slot == refit.first_slot && *refit.single_threaded)) {
		arch_add_one(&slot->calls[call].suppressed);
	} else if (refit.image) {
		refit_suppressed_by_several(call);
	}
}

static inline void refit_real(struct refit_counter *c)
{
	if (c) {
		refit_add(&c->real, 1);
	}
}

static inline void refit_seen_and_real(enum refit_call call)
{
	struct refit_counter *c = refit_counter(call);
	refit_not_suppressed(c);
	refit_real(c);
}

#endif
