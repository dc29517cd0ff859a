/* Counts the heap of an unmodified program: what is live, as requested and as
 * usable, exactly, above whatever allocator it has.
 *
 * Rules that every file here keeps:
 *  - The program gets what the allocator beneath gives: the same addresses, the
 *    same failures, errno as the allocator leaves it.
 *  - No locks, threads or stdio; own memory comes from mmap. The functions may be
 *    called wherever malloc may.
 *  - After the start no system calls are made but mmap(2) and madvise(2) for own
 *    memory, getpid(2) and kill(2) with signal 0 in a forked child, and, once in
 *    512 KiB, those of a sample: process_vm_readv(2) of the own stack, and to read
 *    /proc/self/maps. Beneath a seccomp filter of the program's own only those that
 *    the memory needs.
 *  - Where something cannot be counted, it is not, and that is counted.
 */
#include <errno.h>

#include "beneath.h"
#include "counters.h"
#include "early.h"
#include "heap.h"
#include "samples.h"
#include "shadow.h"

static inline int state_now(void)
{
	return __atomic_load_n(&refit_heap_state, __ATOMIC_ACQUIRE);
}

/* Whether the allocator beneath can be called. */
static __attribute__((noinline)) int begin(void)
{
	if (state_now() == REFIT_HEAP_NEW) {
		refit_heap_begin();
	}
	return state_now() >= REFIT_HEAP_OFF;
}

static inline int is_ready(void)
{
	return LIKELY(state_now() >= REFIT_HEAP_OFF) || begin();
}

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

/* What is counted as usable. */
static inline size_t counts(struct refit_block block)
{
	return UNLIKELY(refit_beneath.hides_usable) ? block.requested
						    : block.usable;
}

/* Of functions that call none of the others: see replaced(). */
#define NO_TURN UINT64_MAX

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
}

/* Of a block that the short form cannot tell, or at whose address one was noted. */
static __attribute__((noinline)) void *
note_otherwise(void *block, struct refit_block sizes, uint64_t turn)
{
	int kept;
	struct refit_block before = refit_shadow_put(block, sizes, &kept);
	if (!kept) {
		REFIT_HEAP_NOTE(untracked);
		return block;
	}
	if (before.usable) {
		replaced(before, turn);
	}
	if (refit_heap_change_anywhere(sizes.requested, counts(sizes),
				       REFIT_HEAP_GIVEN)) {
		sample(block, sizes);
	}
	return block;
}

/* While counting. */
static inline __attribute__((always_inline)) void *
note_counting(void *block, size_t requested, uint64_t turn)
{
	if (UNLIKELY(!block)) {
		return block;
	}
	struct refit_block sizes = {requested, usable_of(block, requested)};
	if (UNLIKELY(!refit_shadow_put_short(block, sizes))) {
		return note_otherwise(block, sizes, turn);
	}
	if (UNLIKELY(refit_heap_change(requested, counts(sizes),
				       REFIT_HEAP_GIVEN))) {
		sample(block, sizes);
	}
	return block;
}

static __attribute__((noinline)) void *
note_since(void *block, size_t requested, uint64_t turn)
{
	return state_now() == REFIT_HEAP_COUNTING
		       ? note_counting(block, requested, turn)
		       : block;
}

static inline void *note(void *block, size_t requested)
{
	return note_since(block, requested, NO_TURN);
}

/* Before the block is given back: afterwards it may be another thread's. */
static void forget(void *block)
{
	if (state_now() != REFIT_HEAP_COUNTING) {
		return;
	}
	struct refit_block sizes = refit_shadow_take(block);
	if (sizes.usable) {
		refit_heap_change_anywhere(sizes.requested, counts(sizes),
					   REFIT_HEAP_TAKEN);
	} else {
		REFIT_HEAP_NOTE(unknown_frees);
	}
}

static __attribute__((noinline)) void *malloc_otherwise(size_t size)
{
	return is_ready() ? note(refit_beneath.malloc(size), size)
			  : refit_early_allocate(size);
}

EXPORT void *malloc(size_t size)
{
	if (UNLIKELY(state_now() != REFIT_HEAP_COUNTING)) {
		return malloc_otherwise(size);
	}
	return note_counting(refit_beneath.malloc(size), size, NO_TURN);
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
	/* What overflows is not given out. */
	return note_since(refit_beneath.calloc(number, size), number * size,
			  turn);
}

static __attribute__((noinline)) void free_otherwise(void *block)
{
	if (block && !refit_is_early(block) && is_ready()) {
		forget(block);
		refit_beneath.free(block);
	}
}

EXPORT void free(void *block)
{
	if (LIKELY(state_now() == REFIT_HEAP_COUNTING)) {
		struct refit_block sizes = refit_shadow_take_short(block);
		if (LIKELY(sizes.usable)) {
			refit_heap_change(sizes.requested, counts(sizes),
					  REFIT_HEAP_TAKEN);
			refit_beneath.free(block);
			return;
		}
	}
	free_otherwise(block);
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

EXPORT void *realloc(void *block, size_t size)
{
	if (UNLIKELY(refit_is_early(block))) {
		return from_early(block, size);
	}
	if (!is_ready()) {
		return refit_early_allocate(size);
	}
	if (!block || state_now() != REFIT_HEAP_COUNTING) {
		return note(refit_beneath.realloc(block, size), size);
	}
	struct refit_block before = refit_shadow_take(block);
	void *moved = refit_beneath.realloc(block, size);
	if (UNLIKELY(!moved && size)) {
		/* It failed: the block is as it was. */
		int kept;
		if (before.usable) {
			refit_shadow_put(block, before, &kept);
		}
		return NULL;
	}
	if (LIKELY(before.usable)) {
		refit_heap_change(before.requested, counts(before),
				  REFIT_HEAP_TAKEN);
	} else {
		REFIT_HEAP_NOTE(unknown_frees);
	}
	return note(moved, size);
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

/* The functions below are not called before the start of a program, and an
 * allocator may lack them: then they are the C library's. */
#define NOTE_OF(function, block, size, turn)                                   \
	(refit_beneath.function##_is_same ? note_since((block), (size), (turn)) \
					  : (block))

static void *lacks(void)
{
	errno = ENOMEM;
	return NULL;
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t size)
{
	if (!is_ready() || !refit_beneath.posix_memalign) {
		return ENOMEM;
	}
	uint64_t turn = refit_heap_turn();
	int error = refit_beneath.posix_memalign(block, alignment, size);
	if (!error) {
		(void)NOTE_OF(posix_memalign, *block, size, turn);
	}
	return error;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	if (!is_ready() || !refit_beneath.aligned_alloc) {
		return lacks();
	}
	uint64_t turn = refit_heap_turn();
	void *block = refit_beneath.aligned_alloc(alignment, size);
	return NOTE_OF(aligned_alloc, block, size, turn);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
	if (!is_ready() || !refit_beneath.memalign) {
		return lacks();
	}
	uint64_t turn = refit_heap_turn();
	void *block = refit_beneath.memalign(alignment, size);
	return NOTE_OF(memalign, block, size, turn);
}

EXPORT void *valloc(size_t size)
{
	if (!is_ready() || !refit_beneath.valloc) {
		return lacks();
	}
	uint64_t turn = refit_heap_turn();
	void *block = refit_beneath.valloc(size);
	return NOTE_OF(valloc, block, size, turn);
}

EXPORT void *pvalloc(size_t size)
{
	if (!is_ready() || !refit_beneath.pvalloc) {
		return lacks();
	}
	uint64_t turn = refit_heap_turn();
	void *block = refit_beneath.pvalloc(size);
	return NOTE_OF(pvalloc, block, size, turn);
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

/* ---- for the C++ operators and the sync library ------------------------- */

EXPORT int refit_heap_is_of_allocator(const void *function)
{
	return begin() &&
	       refit_is_in(refit_object_of(*(void **)&refit_beneath.malloc),
			   function);
}

EXPORT void refit_heap_note(void *block, size_t size)
{
	if (block && is_ready() &&
	    refit_shadow_look(block).requested != size) {
		note(block, size);
	}
}

EXPORT void refit_heap_forget(void *block)
{
	if (block && state_now() == REFIT_HEAP_COUNTING &&
	    refit_shadow_look(block).usable) {
		forget(block);
	}
}

EXPORT void *refit_heap_malloc_beneath(void)
{
	return begin() ? *(void **)&refit_beneath.malloc : NULL;
}
