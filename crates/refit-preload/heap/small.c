#include "small.h"

#include "beneath.h"
#include "file_pages.h"
#include "own_memory.h"
#include "purge.h"
#include "settle.h"

#define NOT_YET REFIT_HEAP_SMALL_UNKNOWN
#define BEING_TOLD (REFIT_HEAP_SMALL_UNKNOWN - 1)

int refit_small_map(void)
{
	struct refit_heap_small_sizes *small = refit_own_memory(sizeof *small);
	if (!small) {
		return 0;
	}
	for (size_t i = 0; i < REFIT_HEAP_SMALL; i++) {
		small->usable[i] = NOT_YET;
	}
	refit_heap.small = small;
	return 1;
}

/* From private numbers to the file. */
static ptrdiff_t distance_to_file(void)
{
	size_t place = refit_heap_place();
	return (char *)&refit_heap.small_in_file[place] -
	       (char *)refit_heap.small;
}

void refit_small_learn(size_t requested, size_t usable)
{
	if (requested >= REFIT_HEAP_SMALL || !refit_heap_quick ||
	    !refit_heap_quick->counts ||
	    !refit_shadow_is_short((struct refit_block){requested, usable})) {
		return;
	}
	uint16_t *known = &refit_heap.small->usable[requested];
	uint16_t expected = NOT_YET;
	if (!__atomic_compare_exchange_n(known, &expected, BEING_TOLD, 0,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		return;
	}
	/* In the file before anything is counted by it. */
	*(uint16_t *)refit_elsewhere(known, distance_to_file()) =
		(uint16_t)usable;
	__atomic_store_n(known, (uint16_t)usable, __ATOMIC_RELEASE);
}

void refit_small_spill(size_t requested)
{
	struct refit_heap_quick *quick = refit_heap_quick;
	struct refit_heap_slot *slot = refit_heap_mine;
	ptrdiff_t distance = refit_heap.mark->distance;
	uint64_t *count = &quick->counts[requested];
	uint64_t allocations = refit_small_allocations(*count);
	uint64_t frees = refit_small_frees(*count);
	uint64_t blocks = allocations - frees;
	struct refit_heap_class *class =
		&slot->classes[refit_heap_class_of(requested)];
	*count = 0;
	__atomic_store_n(refit_elsewhere(count, quick->distance), 0,
			 __ATOMIC_RELAXED);
	refit_add_own(&class->allocations, allocations, distance);
	refit_add_own(&class->frees, frees, distance);
	refit_add_own(&class->requested, blocks * requested, distance);
	refit_add_own(&class->usable,
		      blocks * refit_heap.small->usable[requested], distance);
	refit_add_own(&slot->allocated, allocations * requested, distance);
}

void refit_small_spend(void)
{
	struct refit_heap_quick *quick = refit_heap_quick;
	if (quick) {
		uint64_t spent = quick->granted - quick->left;
		quick->granted = quick->left = 0;
		refit_heap_mine->given += spent;
	}
}

/* ---- whether a thread may count here ------------------------------------ */

/* Pages of the file are allocated before they are written. */
static int has_pages(uint64_t slot, ptrdiff_t distance)
{
	struct refit_heap_small_sizes *own = refit_heap.small;
	uint64_t *slots = &refit_heap.own->process.small_slots;
	if (!refit_load(slots)) {
		if (!refit_heap_allocate(refit_elsewhere(own, distance),
					 REFIT_HEAP_PAGE)) {
			return 0;
		}
		refit_copy_words(refit_elsewhere(own, distance), own,
				 sizeof own->usable);
	}
	if (!refit_heap_allocate(refit_elsewhere(&own->counts[slot], distance),
				 sizeof own->counts[slot])) {
		return 0;
	}
	/* Where another process has ended, its numbers are there. */
	refit_copy_words(refit_elsewhere(&own->counts[slot], distance),
			 &own->counts[slot], sizeof own->counts[slot]);
	uint64_t now = __atomic_or_fetch(slots, 1ull << slot, __ATOMIC_RELAXED);
	__atomic_fetch_or(refit_elsewhere(slots, refit_heap.mark->distance),
			  now, __ATOMIC_RELEASE);
	return 1;
}

static void begin(struct refit_heap_slot *slot)
{
	struct refit_heap_mark *mark = refit_heap.mark;
	refit_heap_quick = NULL;
	if (!refit_heap.small_in_file || !mark->distance ||
	    mark->is_without_small ||
	    refit_beneath.tells_usable != REFIT_TELLS) {
		return;
	}
	uint64_t number = (uint64_t)(slot - refit_heap.own->slots);
	struct refit_heap_quick *quick = &mark->quick[number];
	if (!quick->counts) {
		ptrdiff_t distance = distance_to_file();
		if (!has_pages(number, distance)) {
			mark->is_without_small = 1;
			return;
		}
		quick->pending = REFIT_PENDING_NOTHING;
		quick->distance = distance;
		quick->counts = refit_heap.small->counts[number];
	}
	refit_heap_quick = quick;
}

/* Half of what may be missing: the other half is of what goes the longer way. */
static int64_t may_lag(void)
{
	int64_t live = (int64_t)refit_load(&refit_heap.own->process.live.usable);
	int64_t lag = live / REFIT_HEAP_LAG_SHARE;
	lag = lag < REFIT_HEAP_LAG ? REFIT_HEAP_LAG : lag;
	return (lag > REFIT_HEAP_LAG_MOST ? REFIT_HEAP_LAG_MOST : lag) / 2;
}

void refit_small_grant(void)
{
	struct refit_heap_slot *slot = refit_heap_mine;
	if (!slot || slot->is_shared) {
		return;
	}
	if (!refit_heap_quick || !refit_heap_quick->counts) {
		begin(slot);
	}
	struct refit_heap_quick *quick = refit_heap_quick;
	if (!quick) {
		return;
	}
	const int64_t most = may_lag();
	struct refit_heap_size size = refit_pending_unpack(quick->pending);
	int64_t usable = (int64_t)size.usable;
	int64_t requested = (int64_t)size.requested;
	int64_t blocks = (int64_t)size.blocks;
	const int64_t many = (int64_t)1 << (REFIT_PENDING_REQUESTED - 3);
	if (usable > most / 2 || usable < -most / 2 || requested > many ||
	    requested < -many || blocks > many || blocks < -many) {
		refit_heap_settle(slot);
		usable = 0;
	}
	uint64_t may = (uint64_t)(usable > 0 ? most - usable : most);
	/* The one at which a sample is due goes the longer way. */
	uint64_t until = slot->sample_at > slot->given
				 ? slot->sample_at - slot->given - 1
				 : 0;
	quick->granted = quick->left = may < until ? may : until;
}

__attribute__((noinline)) int refit_small_renew(size_t usable)
{
	struct refit_heap_quick *quick = refit_heap_quick;
	if (!quick->counts) {
		return 0;
	}
	refit_small_spend();
	refit_small_grant();
	refit_purge_look();
	return quick->left >= usable;
}

void refit_small_inherit(struct refit_heap_slot *to)
{
	struct refit_heap_small_sizes *small = refit_heap.small;
	uint64_t slots = refit_heap.own->process.small_slots;
	for (size_t i = 0; i < REFIT_HEAP_SLOTS; i++) {
		for (size_t n = 0; slots >> i & 1 && n < REFIT_HEAP_SMALL; n++) {
			uint64_t count = small->counts[i][n];
			if (!count) {
				continue;
			}
			uint64_t blocks =
				refit_small_allocations(count) -
				refit_small_frees(count);
			struct refit_heap_class *class =
				&to->classes[refit_heap_class_of(n)];
			class->frees -= blocks;
			class->requested += blocks * n;
			class->usable += blocks * small->usable[n];
			small->counts[i][n] = 0;
		}
	}
	refit_heap.own->process.small_slots = 0;
}
