#include "settle.h"

#include "field.h"
#include "own_counters.h"
#include "pending.h"
#include "purge.h"

static uint64_t take(const struct refit_heap_slot *slot, uint64_t *field)
{
	if (slot->is_shared) {
		return __atomic_exchange_n(field, 0, __ATOMIC_RELAXED);
	}
	uint64_t had = *field;
	*field = 0;
	return had;
}

void __attribute__((noinline)) refit_heap_settle(struct refit_heap_slot *slot)
{
	struct refit_heap_process *process = &refit_heap.own->process;
	uint64_t pending[3] = {
		take(slot, &slot->pending_requested),
		take(slot, &slot->pending_usable),
		take(slot, &slot->pending_blocks),
	};
	struct refit_heap_size small = refit_pending_take();
	struct refit_heap_size now = {
		refit_add_shared(&process->live.requested,
				 pending[0] + small.requested, 0),
		refit_add_shared(&process->live.usable,
				 pending[1] + small.usable, 0),
		refit_add_shared(&process->live.blocks,
				 pending[2] + small.blocks, 0),
	};
	ptrdiff_t distance = refit_heap.mark->distance;
	if ((int64_t)now.usable > (int64_t)refit_load(&process->peak.usable)) {
		refit_copy_words(&process->peak, &now, sizeof now);
		refit_copy_words(refit_elsewhere(&process->peak, distance), &now,
			   sizeof now);
	}
	refit_purge_look();
}
