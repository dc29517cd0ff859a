/* The shortest way to count. A request of less than REFIT_HEAP_SMALL bytes is counted by its
 * exact size: then one number tells of an allocation or a free what four would tell of a
 * class. What is usable of a request of n bytes is nearly always the same: what the allocator
 * told first is kept, and blocks that have something else are counted by their class
 * (counters.h). Whether a block is counted here or there makes no difference for the sums:
 * what one gained by an allocation the other may lose by the free.
 *
 * All that says that a thread may count here lies in the page that fork wipes: with zeros
 * there it may not, and the longer way (refit_small_grant) finds out what to do.
 */
#ifndef REFIT_HEAP_SMALL_SIZES_H
#define REFIT_HEAP_SMALL_SIZES_H

#include <stddef.h>
#include <stdint.h>

#include "block.h"
#include "field.h"
#include "own_counters.h"
#include "pending.h"
#include "shadow.h"

/* What this thread gave out is added to `given` of its slot, and the next allocation goes
 * the longer way. */
void refit_small_spend(void);

/* After an allocation that went the longer way: the next ones need not. */
void refit_small_grant(void);

/* The same before an allocation of so many bytes. 0: it has to go the longer way. */
int refit_small_renew(size_t usable);

static inline uint64_t refit_small_allocations(uint64_t count)
{
	return count % REFIT_HEAP_SMALL_FREE;
}

static inline uint64_t refit_small_frees(uint64_t count)
{
	return count / REFIT_HEAP_SMALL_FREE;
}

/* Adds a count to the class, and begins it again. */
void refit_small_spill(size_t requested);

static inline uint64_t refit_small_count(struct refit_heap_quick *quick,
					 size_t requested, uint64_t change)
{
	uint64_t *count = &quick->counts[requested];
	uint64_t sum = *count + change;
	*count = sum;
	__atomic_store_n(refit_elsewhere(count, quick->distance), sum,
			 __ATOMIC_RELAXED);
	return sum;
}

/* A block was given out, of which the allocator tells so many usable bytes. 0: nothing was
 * done, and it is to be noted in another way. */
static inline int refit_small_given(const void *block, size_t requested,
				    size_t usable)
{
	struct refit_heap_quick *quick = refit_heap_quick;
	if (UNLIKELY(requested >= REFIT_HEAP_SMALL ||
		     usable != refit_heap.small->usable[requested])) {
		return 0;
	}
	uint8_t *entry = refit_shadow_find(block);
	if (UNLIKELY(!entry || entry[0] ||
		     (quick->left < usable && !refit_small_renew(usable)))) {
		return 0;
	}
	refit_shadow_write_short(entry, (struct refit_block){requested, usable});
	quick->left -= usable;
	quick->pending += refit_pending_change(requested, usable);
	if (UNLIKELY((int32_t)refit_small_count(quick, requested, 1) < 0)) {
		refit_small_spill(requested);
	}
	return 1;
}

/* 0: it is to be counted by its class. */
static inline int refit_small_count_free(struct refit_block block)
{
	struct refit_heap_quick *quick = refit_heap_quick;
	uint64_t pending = quick->pending - refit_pending_change(block.requested,
							       block.usable);
	if (UNLIKELY(block.requested >= REFIT_HEAP_SMALL ||
		     block.usable != refit_heap.small->usable[block.requested] ||
		     pending >> REFIT_PENDING_RANGE != 1)) {
		return 0;
	}
	quick->pending = pending;
	if (UNLIKELY((int64_t)refit_small_count(quick, block.requested,
						REFIT_HEAP_SMALL_FREE) < 0)) {
		refit_small_spill(block.requested);
	}
	return 1;
}

/* A block is about to be taken back. 0: as above. */
static inline int refit_small_taken(const void *block)
{
	if (UNLIKELY(!refit_heap_quick)) {
		return 0;
	}
	uint8_t *entry = refit_shadow_find(block);
	if (UNLIKELY(!entry || !(entry[0] & REFIT_SHADOW_SHORT_FORM) ||
		     !refit_small_count_free(refit_shadow_read_short(entry)))) {
		return 0;
	}
	refit_shadow_erase_short(entry);
	return 1;
}

/* Maps the private numbers; 0 when that fails. */
int refit_small_map(void);

/* The allocator told this of a request. */
void refit_small_learn(size_t requested, size_t usable);

/* In a forked child: all of it goes to the classes of one slot. */
void refit_small_inherit(struct refit_heap_slot *to);

#endif
