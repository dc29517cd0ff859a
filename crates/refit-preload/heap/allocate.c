/* Counts the heap of an unmodified program: what is live, as requested and as
 * usable, exactly, above whatever allocator it has.
 *
 * Rules that every file here keeps:
 *  - The program gets what the allocator beneath gives: the same addresses, the
 *    same failures, errno as the allocator leaves it.
 *  - No locks, threads or stdio; own memory comes from mmap. The functions may be
 *    called wherever malloc may.
 *  - After the start no system calls are made but mmap(2) and madvise(2) for own
 *    memory, those of address_space.c and give_up.c when the program limits itself or
 *    lacks memory, getpid(2) and kill(2) with signal 0 in a forked child, once in
 *    512 KiB those of a sample (process_vm_readv(2) of the own stack, and to read
 *    /proc/self/maps), and those of purge.c when refit asks for a copy. Beneath a seccomp filter of the
 *    program's own only those that the memory needs.
 *  - Where something cannot be counted, it is not, and that is counted.
 */
#include <errno.h>

#include "beneath.h"
#include "counters.h"
#include "early.h"
#include "notes.h"
#include "purge.h"
#include "samples.h"
#include "shadow.h"
#include "small.h"

#define NO_TURN REFIT_NO_TURN
#define state_now refit_heap_state_now
#define is_ready refit_heap_is_ready
#define counts refit_heap_counts

/* gperftools' malloc_usable_size allocates when it is called for the first time:
 * that block is taken to be as large as requested. */
static __attribute__((noinline)) size_t usable_for_the_first_time(void *block)
{
	refit_beneath.tells_usable = REFIT_TELLS_NOTHING;
	size_t usable = refit_beneath.malloc_usable_size(block);
	refit_beneath.tells_usable = REFIT_TELLS;
	return usable;
}

/* Usable bytes; a multiple of 8, which all that lies between blocks is too. */
static inline size_t usable_of(void *block, size_t requested)
{
	size_t usable = 0;
	if (LIKELY(refit_beneath.tells_usable == REFIT_TELLS)) {
		usable = refit_beneath.malloc_usable_size(block);
	} else if (refit_beneath.tells_usable == REFIT_TELLS_UNASKED) {
		usable = usable_for_the_first_time(block);
	}
	/* gperftools tells too little of blocks from before its start. */
	if (UNLIKELY(usable < requested)) {
		usable = requested;
	}
	usable = (usable + 7) & ~(size_t)7;
	return usable ? usable : 8;
}

/* A block was noted at an address that is given out again. musl's calloc, for one,
 * calls malloc: then that was a part of this allocation, during which `turn` has
 * changed. Else it was freed by a function that we do not see. */
static __attribute__((noinline)) void replaced(struct refit_block before,
					       uint64_t turn)
{
	if (turn != NO_TURN && turn != refit_heap_turn()) {
		refit_heap_change_anywhere(before.requested, counts(before),
					   REFIT_HEAP_RETRACTED);
	} else {
		refit_heap_change_anywhere(before.requested, counts(before),
					   REFIT_HEAP_TAKEN);
		REFIT_HEAP_NOTE(vanished);
	}
}

static void sample(const void *block, struct refit_block sizes)
{
	if (refit_sample(block, sizes)) {
		refit_shadow_mark_sampled(block);
	}
	refit_purge_look();
}

/* While counting: of a block that small.h does not count. */
static __attribute__((noinline)) void *
note_counting(void *block, size_t requested, uint64_t turn)
{
	if (!block) {
		return block;
	}
	struct refit_block sizes = {requested, usable_of(block, requested)};
	int kept;
	refit_small_spend();
	struct refit_block before = refit_shadow_put(block, sizes, &kept);
	if (!kept) {
		REFIT_HEAP_NOTE(untracked);
		return block;
	}
	if (UNLIKELY(before.usable)) {
		replaced(before, turn);
	}
	if (UNLIKELY(refit_heap_change(requested, counts(sizes),
				       REFIT_HEAP_GIVEN))) {
		sample(block, sizes);
	}
	refit_small_learn(requested, sizes.usable);
	refit_small_grant();
	return block;
}

/* The same of any block. */
static inline __attribute__((always_inline)) void *
note_quick(void *block, size_t requested, uint64_t turn)
{
	return LIKELY(refit_small_given(
		       block, requested,
		       refit_beneath.malloc_usable_size(block)))
		       ? block
		       : refit_note(block, requested, turn);
}

/* Without the table of live blocks. */
static void *note_without_table(void *block, size_t requested, uint64_t turn)
{
	if (!block || (turn != NO_TURN && turn != refit_heap_turn())) {
		return block;
	}
	struct refit_block sizes = {requested, usable_of(block, requested)};
	if (refit_heap_change_by_usable(requested, sizes.usable, REFIT_HEAP_GIVEN)) {
		refit_sample(block, sizes);
	}
	return block;
}

static void forget_without_table(void *block)
{
	refit_sample_drop(block);
	refit_heap_change_by_usable(0, usable_of(block, 0), REFIT_HEAP_TAKEN);
}

__attribute__((noinline)) void *refit_note(void *block, size_t requested,
					   uint64_t turn)
{
	switch (state_now()) {
	case REFIT_HEAP_COUNTING:
		return note_counting(block, requested, turn);
	case REFIT_HEAP_TABLELESS:
		return note_without_table(block, requested, turn);
	default:
		return block;
	}
}

static inline void *note(void *block, size_t requested)
{
	return refit_note(block, requested, NO_TURN);
}

void refit_forget(void *block)
{
	if (state_now() == REFIT_HEAP_TABLELESS) {
		forget_without_table(block);
	}
	if (state_now() != REFIT_HEAP_COUNTING) {
		return;
	}
	struct refit_block sizes = refit_shadow_take(block);
	if (!sizes.usable) {
		REFIT_HEAP_NOTE(unknown_frees);
		return;
	}
	refit_small_spend();
	refit_heap_change(sizes.requested, counts(sizes), REFIT_HEAP_TAKEN);
	refit_small_grant();
}

static __attribute__((noinline)) void *malloc_otherwise(size_t size)
{
	if (!is_ready()) {
		return refit_early_allocate(size);
	}
	void *block = refit_beneath.malloc(size);
	return note(REFIT_OR_AGAIN(block, size, refit_beneath.malloc(size)), size);
}

EXPORT void *malloc(size_t size)
{
	if (UNLIKELY(!refit_heap_quick)) {
		return malloc_otherwise(size);
	}
	void *block = refit_beneath.malloc(size);
	/* It may have been our fault. */
	return LIKELY(block != NULL) ? note_quick(block, size, NO_TURN)
				     : malloc_otherwise(size);
}

EXPORT void *calloc(size_t number, size_t size)
{
	size_t bytes;
	if (!is_ready()) {
		return __builtin_mul_overflow(number, size, &bytes)
			       ? NULL
			       : refit_early_allocate(bytes);
	}
	uint64_t turn = refit_heap_turn();
	void *block = refit_beneath.calloc(number, size);
	if (__builtin_mul_overflow(number, size, &bytes)) {
		return block; /* NULL */
	}
	block = REFIT_OR_AGAIN(block, bytes, refit_beneath.calloc(number, size));
	return LIKELY(block && refit_heap_quick)
		       ? note_quick(block, bytes, turn)
		       : refit_note(block, bytes, turn);
}

static __attribute__((noinline)) void free_otherwise(void *block)
{
	if (block && !refit_is_early(block) && is_ready()) {
		refit_forget(block);
		refit_beneath.free(block);
	}
}

EXPORT void free(void *block)
{
	if (UNLIKELY(!refit_small_taken(block))) {
		free_otherwise(block);
		return;
	}
	refit_beneath.free(block);
}

static void *from_early(void *block, size_t size)
{
	void *moved = malloc(size);
	size_t had = refit_early_size(block);
	if (moved) {
		__builtin_memcpy(moved, block, had < size ? had : size);
	}
	return moved;
}

static void *malloc_by_realloc(size_t size)
{
	void *block = refit_beneath.realloc(NULL, size);
	return note(REFIT_OR_AGAIN(block, size, refit_beneath.realloc(NULL, size)),
		    size);
}

static void *realloc_without_table(void *block, size_t size)
{
	size_t usable = usable_of(block, 0);
	/* Where it fails, the block stays, and a sample of it is lost. */
	refit_sample_drop(block);
	void *moved = refit_beneath.realloc(block, size);
	if (size) {
		moved = REFIT_OR_AGAIN(moved, size,
				 refit_beneath.realloc(block, size));
	}
	if ((moved || !size) && state_now() == REFIT_HEAP_TABLELESS) {
		refit_heap_change_by_usable(0, usable, REFIT_HEAP_TAKEN);
		note_without_table(moved, size, NO_TURN);
	}
	return moved;
}

EXPORT void *realloc(void *block, size_t size)
{
	if (UNLIKELY(refit_is_early(block))) {
		return from_early(block, size);
	}
	if (!is_ready()) {
		return refit_early_allocate(size);
	}
	if (!block) {
		return malloc_by_realloc(size);
	}
	if (state_now() == REFIT_HEAP_TABLELESS) {
		return realloc_without_table(block, size);
	}
	if (state_now() != REFIT_HEAP_COUNTING) {
		return refit_beneath.realloc(block, size);
	}
	struct refit_block before = refit_shadow_take(block);
	void *moved = refit_beneath.realloc(block, size);
	if (UNLIKELY(!moved && size)) {
		moved = REFIT_OR_AGAIN(moved, size,
				       refit_beneath.realloc(block, size));
		if (state_now() != REFIT_HEAP_COUNTING) {
			return moved;
		}
		/* It failed: the block is as it was. */
		int kept;
		if (before.usable) {
			refit_shadow_put(block, before, &kept);
		}
		return NULL;
	}
	if (LIKELY(before.usable)) {
		if (!refit_heap_quick || !refit_small_count_free(before)) {
			refit_heap_change(before.requested, counts(before),
					  REFIT_HEAP_TAKEN);
		}
	} else {
		REFIT_HEAP_NOTE(unknown_frees);
	}
	return LIKELY(moved && refit_heap_quick)
		       ? note_quick(moved, size, NO_TURN)
		       : note(moved, size);
}

/* As glibc and musl have it; an allocator's own would not come back to us. */
EXPORT void *reallocarray(void *block, size_t number, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(number, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(block, bytes);
}

EXPORT size_t malloc_usable_size(void *block)
{
	if (UNLIKELY(refit_is_early(block))) {
		return refit_early_size(block);
	}
	if (!is_ready() || !refit_beneath.malloc_usable_size) {
		return 0;
	}
	return refit_beneath.malloc_usable_size(block);
}
