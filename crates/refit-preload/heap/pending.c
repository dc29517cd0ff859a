#include "pending.h"

#include "own_counters.h"

/* Its lowest 22 bits, with their sign; what is above them remains. */
static int64_t take_field(uint64_t *packed)
{
	const unsigned rest = 64 - REFIT_PENDING_REQUESTED;
	int64_t field = (int64_t)(*packed << rest) >> rest;
	*packed = (uint64_t)((int64_t)(*packed - (uint64_t)field) >>
			     REFIT_PENDING_REQUESTED);
	return field;
}

struct refit_heap_size refit_pending_unpack(uint64_t pending)
{
	pending -= REFIT_PENDING_NOTHING;
	struct refit_heap_size size;
	size.blocks = (uint64_t)take_field(&pending);
	size.requested = (uint64_t)take_field(&pending);
	size.usable = pending;
	return size;
}

struct refit_heap_size refit_pending_take(void)
{
	struct refit_heap_quick *quick = refit_heap_quick;
	if (!quick || !quick->counts) {
		return (struct refit_heap_size){0, 0, 0};
	}
	uint64_t pending = quick->pending;
	quick->pending = REFIT_PENDING_NOTHING;
	return refit_pending_unpack(pending);
}
