/* Addresses of a program are below 2^47 (Linux gives higher ones only to who asks
 * for them). The top level is static; the others come as they are needed, and
 * stay. The bytes of a block are written by whoever owns the block alone.
 *
 * How a block that begins at a byte is written there, with the sizes in bytes:
 *   0          no block begins here
 *   1 … 9      usable is 8, requested is 0 … 8
 *   0x7f       usable in the next 7 bytes, requested in the 8 after them
 *   0x80 | n   usable is 8 n, the next byte is usable - requested
 * A block of n usable bytes owns n / 8 bytes of the table, and no form needs
 * more of them than its block has.
 */
#include "shadow.h"

#include <stdint.h>

#include "own_memory.h"
#include "prim.h"

#define ADDRESS_BITS 47
#define LEAF_BITS 20 /* a leaf describes 1 MiB */
#define MIDDLE_BITS 14
#define TOP_BITS (ADDRESS_BITS - MIDDLE_BITS - LEAF_BITS)

#define LEAF_BYTES ((size_t)1 << (LEAF_BITS - 3))
/* What begins at the end of a leaf is written beyond it. */
#define LEAF_TAIL 64

#define LONG_FORM 0x7f
#define SHORT_FORM 0x80

struct middle {
	uint8_t *leaves[1 << MIDDLE_BITS];
};

static struct middle *top[1 << TOP_BITS];

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

/* Where a block is written; NULL when nothing near it was. */
static inline uint8_t *find(uintptr_t address)
{
	if (UNLIKELY(address >> ADDRESS_BITS)) {
		return NULL;
	}
	struct middle *middle =
		__atomic_load_n(&top[address >> (MIDDLE_BITS + LEAF_BITS)],
				__ATOMIC_ACQUIRE);
	if (UNLIKELY(!middle)) {
		return NULL;
	}
	uintptr_t leaf_index =
		(address >> LEAF_BITS) & (((uintptr_t)1 << MIDDLE_BITS) - 1);
	uint8_t *leaf = __atomic_load_n(&middle->leaves[leaf_index],
					__ATOMIC_ACQUIRE);
	if (UNLIKELY(!leaf)) {
		return NULL;
	}
	return leaf + ((address & (((uintptr_t)1 << LEAF_BITS) - 1)) >> 3);
}

static uint8_t *make(uintptr_t address)
{
	if (address >> ADDRESS_BITS) {
		return NULL;
	}
	struct middle *middle =
		filled((void **)&top[address >> (MIDDLE_BITS + LEAF_BITS)],
		       sizeof *middle);
	if (!middle) {
		return NULL;
	}
	uintptr_t leaf_index =
		(address >> LEAF_BITS) & (((uintptr_t)1 << MIDDLE_BITS) - 1);
	return filled((void **)&middle->leaves[leaf_index],
		      LEAF_BYTES + LEAF_TAIL)
		       ? find(address)
		       : NULL;
}

static inline struct refit_block read_block(const uint8_t *entry)
{
	uint8_t form = entry[0];
	if (LIKELY(form & SHORT_FORM)) {
		size_t usable = (size_t)(form & 0x7f) << 3;
		return (struct refit_block){usable - entry[1], usable};
	}
	if (form == LONG_FORM) {
		uint64_t usable, requested;
		__builtin_memcpy(&usable, entry, 8);
		__builtin_memcpy(&requested, entry + 8, 8);
		return (struct refit_block){requested, usable >> 8};
	}
	return form ? (struct refit_block){form - 1u, 8}
		    : (struct refit_block){0, 0};
}

static inline void write_block(uint8_t *entry, struct refit_block block)
{
	size_t slack = block.usable - block.requested;
	if (LIKELY(block.usable > 8 && block.usable <= 1016 && slack <= 255)) {
		entry[0] = (uint8_t)(SHORT_FORM | (block.usable >> 3));
		entry[1] = (uint8_t)slack;
	} else if (block.usable <= 8) {
		entry[0] = (uint8_t)(block.requested + 1);
	} else {
		uint64_t usable = (uint64_t)block.usable << 8 | LONG_FORM;
		uint64_t requested = block.requested;
		__builtin_memcpy(entry, &usable, 8);
		__builtin_memcpy(entry + 8, &requested, 8);
	}
}

/* All bytes that the block has: another one may begin at any of them. */
static inline struct refit_block take_block(uint8_t *entry)
{
	struct refit_block block = read_block(entry);
	size_t bytes = entry[0] & SHORT_FORM	 ? 2
		       : entry[0] == LONG_FORM ? 16
						 : 1;
	__builtin_memset(entry, 0, bytes);
	return block;
}

struct refit_block refit_shadow_put(const void *at, struct refit_block block,
				    int *kept)
{
	uint8_t *entry = find((uintptr_t)at);
	if (UNLIKELY(!entry)) {
		entry = make((uintptr_t)at);
	}
	*kept = entry != NULL;
	if (UNLIKELY(!entry)) {
		return (struct refit_block){0, 0};
	}
	struct refit_block before = {0, 0};
	if (UNLIKELY(entry[0])) {
		before = take_block(entry);
	}
	write_block(entry, block);
	return before;
}

struct refit_block refit_shadow_take(const void *at)
{
	uint8_t *entry = find((uintptr_t)at);
	if (UNLIKELY(!entry)) {
		return (struct refit_block){0, 0};
	}
	/* The usual form, in one load and one store. */
	if (LIKELY(entry[0] & SHORT_FORM)) {
		struct refit_block block = read_block(entry);
		__builtin_memset(entry, 0, 2);
		return block;
	}
	return take_block(entry);
}

struct refit_block refit_shadow_look(const void *at)
{
	const uint8_t *entry = find((uintptr_t)at);
	return entry ? read_block(entry) : (struct refit_block){0, 0};
}
