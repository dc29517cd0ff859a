#include "shadow.h"

#include <stdint.h>

#include "own_memory.h"
#include "prim.h"
#include "samples.h"

#define LEAF_BYTES ((size_t)1 << (REFIT_SHADOW_LEAF_BITS - 3))
/* What begins at the end of a leaf is written beyond it. */
#define LEAF_TAIL 64

struct refit_shadow_middle *refit_shadow_top[1 << REFIT_SHADOW_TOP_BITS];

/* What is at `where`, or, when that is NULL, new memory. */
static void *filled(void **where, size_t size)
{
	void *there = __atomic_load_n(where, __ATOMIC_ACQUIRE);
	if (LIKELY(there != NULL)) {
		return there;
	}
	void *made = refit_own_memory(size);
	/* Of two threads one wins; the other's memory is not used. */
	if (made && !__atomic_compare_exchange_n(where, &there, made, 0,
						 __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE)) {
		return there;
	}
	return made;
}

static uint8_t *make(const void *at)
{
	uintptr_t leaf_index = (uintptr_t)at >> REFIT_SHADOW_LEAF_BITS;
	uintptr_t middle_index = leaf_index >> REFIT_SHADOW_MIDDLE_BITS;
	if (middle_index >> REFIT_SHADOW_TOP_BITS) {
		return NULL;
	}
	struct refit_shadow_middle *middle = filled(
		(void **)&refit_shadow_top[middle_index], sizeof *middle);
	if (!middle) {
		return NULL;
	}
	leaf_index &= ((uintptr_t)1 << REFIT_SHADOW_MIDDLE_BITS) - 1;
	return filled((void **)&middle->leaves[leaf_index],
		      LEAF_BYTES + LEAF_TAIL)
		       ? refit_shadow_find(at)
		       : NULL;
}

static struct refit_block read_block(const uint8_t *entry)
{
	uint8_t form = entry[0];
	if ((form & REFIT_SHADOW_SHORT_FORM)) {
		return refit_shadow_read_short(entry);
	}
	if (form == REFIT_SHADOW_LONG_FORM) {
		uint64_t usable, requested;
		__builtin_memcpy(&usable, entry, 8);
		__builtin_memcpy(&requested, entry + 8, 8);
		return (struct refit_block){requested, usable >> 8};
	}
	return form ? (struct refit_block){form - 1u, 8}
		    : (struct refit_block){0, 0};
}

static void write_long(uint8_t *entry, struct refit_block block, uint8_t form)
{
	uint64_t usable = (uint64_t)block.usable << 8 | form;
	uint64_t requested = block.requested;
	__builtin_memcpy(entry, &usable, 8);
	__builtin_memcpy(entry + 8, &requested, 8);
}

static void write_block(uint8_t *entry, struct refit_block block)
{
	if (refit_shadow_is_short(block)) {
		refit_shadow_write_short(entry, block);
	} else if (block.usable <= 8) {
		entry[0] = (uint8_t)(block.requested + 1);
	} else {
		write_long(entry, block, REFIT_SHADOW_LONG_FORM);
	}
}

/* All bytes that the block has: another one may begin at any of them. */
static struct refit_block take_block(uint8_t *entry, const void *at)
{
	uint8_t form = entry[0];
	int is_sample = refit_shadow_is_sample(form);
	struct refit_block block = is_sample ? (struct refit_block){0, 0}
					     : read_block(entry);
	size_t bytes = form & REFIT_SHADOW_SHORT_FORM	      ? 2
		       : form == REFIT_SHADOW_LONG_FORM ||
				       form == REFIT_SHADOW_LONG_SAMPLE
			       ? 16
			       : 1;
	__builtin_memset(entry, 0, bytes);
	return is_sample ? refit_sample_take(at) : block;
}

struct refit_block refit_shadow_put(const void *at, struct refit_block block,
				    int *kept)
{
	uint8_t *entry = refit_shadow_find(at);
	if (!entry) {
		entry = make(at);
	}
	*kept = entry != NULL;
	struct refit_block before = {0, 0};
	if (!entry) {
		return before;
	}
	if (entry[0]) {
		before = take_block(entry, at);
	}
	write_block(entry, block);
	return before;
}

struct refit_block refit_shadow_take(const void *at)
{
	uint8_t *entry = refit_shadow_find(at);
	return entry ? take_block(entry, at) : (struct refit_block){0, 0};
}

void refit_shadow_mark_sampled(const void *at)
{
	uint8_t *entry = refit_shadow_find(at);
	if (!entry) {
		return;
	}
	struct refit_block block = take_block(entry, at);
	if (block.usable >= 128) {
		write_long(entry, block, REFIT_SHADOW_LONG_SAMPLE);
	} else {
		entry[0] = REFIT_SHADOW_SHORT_SAMPLE;
	}
}

struct refit_block refit_shadow_look(const void *at)
{
	const uint8_t *entry = refit_shadow_find(at);
	if (!entry) {
		return (struct refit_block){0, 0};
	}
	return refit_shadow_is_sample(entry[0]) ? refit_sample_look(at)
						: read_block(entry);
}
