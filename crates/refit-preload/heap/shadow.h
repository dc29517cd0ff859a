/* What was requested, and what is usable, of each live block, without a header:
 * one byte beside each 8 bytes of heap, in a table of three levels.
 *
 * Addresses of a program are below 2^47 on x86-64, and below 2^48 on arm64 (Linux
 * gives higher ones only to who asks for them). The top level is static; the others come as they are needed, and
 * stay. The bytes of a block are written by whoever owns the block alone.
 *
 * How a block that begins at a byte is written there, with the sizes in bytes:
 *   0          no block begins here
 *   1 … 9      usable is 8, requested is 0 … 8
 *   0x7d       as 0x7f, and it is a sample (samples.h)
 *   0x7e       a sample of less than 128 usable bytes: its sizes are there alone
 *   0x7f       usable in the next 7 bytes, requested in the 8 after them
 *   0x80 | n   usable is 8 n, the next byte is usable - requested
 * A block of n usable bytes owns n / 8 bytes of the table, and no form needs
 * more of them than its block has.
 */
#ifndef REFIT_HEAP_SHADOW_H
#define REFIT_HEAP_SHADOW_H

#include <stddef.h>
#include <stdint.h>

#include "block.h"
#include "prim.h"

#define REFIT_SHADOW_ADDRESS_BITS 48
#define REFIT_SHADOW_LEAF_BITS 20 /* a leaf describes 1 MiB */
#define REFIT_SHADOW_MIDDLE_BITS 14
#define REFIT_SHADOW_TOP_BITS                                                  \
	(REFIT_SHADOW_ADDRESS_BITS - REFIT_SHADOW_MIDDLE_BITS -                \
	 REFIT_SHADOW_LEAF_BITS)

#define REFIT_SHADOW_LONG_SAMPLE 0x7d
#define REFIT_SHADOW_SHORT_SAMPLE 0x7e
#define REFIT_SHADOW_LONG_FORM 0x7f
#define REFIT_SHADOW_SHORT_FORM 0x80
/* What the short form can tell. */
#define REFIT_SHADOW_SHORT_USABLE 1016
#define REFIT_SHADOW_SHORT_SLACK 255

static inline int refit_shadow_is_sample(uint8_t form)
{
	return form == REFIT_SHADOW_SHORT_SAMPLE ||
	       form == REFIT_SHADOW_LONG_SAMPLE;
}

struct refit_shadow_middle {
	uint8_t *leaves[1 << REFIT_SHADOW_MIDDLE_BITS];
};

extern HIDDEN struct refit_shadow_middle
	*refit_shadow_top[1 << REFIT_SHADOW_TOP_BITS];

/* Where a block is written; NULL when nothing near it was. */
static inline uint8_t *refit_shadow_find(const void *at)
{
	uintptr_t address = (uintptr_t)at;
	if (UNLIKELY(address >> REFIT_SHADOW_ADDRESS_BITS)) {
		return NULL;
	}
	uintptr_t leaf_index = address >> REFIT_SHADOW_LEAF_BITS;
	struct refit_shadow_middle *middle = __atomic_load_n(
		&refit_shadow_top[leaf_index >> REFIT_SHADOW_MIDDLE_BITS],
		__ATOMIC_ACQUIRE);
	if (UNLIKELY(!middle)) {
		return NULL;
	}
	leaf_index &= ((uintptr_t)1 << REFIT_SHADOW_MIDDLE_BITS) - 1;
	uint8_t *leaf = __atomic_load_n(&middle->leaves[leaf_index],
					__ATOMIC_ACQUIRE);
	if (UNLIKELY(!leaf)) {
		return NULL;
	}
	address &= ((uintptr_t)1 << REFIT_SHADOW_LEAF_BITS) - 1;
	return leaf + (address >> 3);
}

/* Whether the usual form can tell of a block. */
static inline int refit_shadow_is_short(struct refit_block block)
{
	return block.usable % 8 == 0 && block.usable > 8 &&
	       block.usable <= REFIT_SHADOW_SHORT_USABLE &&
	       block.requested <= block.usable &&
	       block.usable - block.requested <= REFIT_SHADOW_SHORT_SLACK;
}

/* In one store. */
static inline void refit_shadow_write_short(uint8_t *entry,
					    struct refit_block block)
{
	size_t slack = block.usable - block.requested;
	uint16_t both = (uint16_t)(REFIT_SHADOW_SHORT_FORM |
				   (block.usable >> 3) | (slack << 8));
	__builtin_memcpy(entry, &both, sizeof both);
}

static inline struct refit_block refit_shadow_read_short(const uint8_t *entry)
{
	uint16_t both;
	__builtin_memcpy(&both, entry, sizeof both);
	size_t usable = (size_t)(both & 0x7f) << 3;
	return (struct refit_block){usable - (both >> 8), usable};
}

static inline void refit_shadow_erase_short(uint8_t *entry)
{
	__builtin_memset(entry, 0, 2);
}

/* Notes a block, and returns what was noted at its address before. 0 in `kept`
 * when there is no memory for the table, or the address is not one of a
 * program's. */
struct refit_block refit_shadow_put(const void *at, struct refit_block block,
				    int *kept);

/* Takes a block out of the table. */
struct refit_block refit_shadow_take(const void *at);

/* The sizes of a block are from now on those of its sample. */
void refit_shadow_mark_sampled(const void *at);

/* The block there, which stays. */
struct refit_block refit_shadow_look(const void *at);

#endif
