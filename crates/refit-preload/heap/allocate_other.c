/* Functions that give out aligned blocks, and what other libraries of ours ask. */
#include <errno.h>

#include "beneath.h"
#include "counters.h"
#include "early.h"
#include "notes.h"
#include "shadow.h"

/* The functions below are not called before the start of a program, and an
 * allocator may lack them: then they are the C library's. */
#define NOTE_OF(function, block, size, turn)                                   \
	(refit_beneath.function##_is_same ? refit_note((block), (size), (turn)) \
					  : (block))

static void *lacks(void)
{
	errno = ENOMEM;
	return NULL;
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t size)
{
	if (!refit_heap_is_ready() || !refit_beneath.posix_memalign) {
		return ENOMEM;
	}
	uint64_t turn = refit_heap_turn();
	int error = refit_beneath.posix_memalign(block, alignment, size);
	if (error == ENOMEM && REFIT_OR_AGAIN(NULL, size, block)) {
		error = refit_beneath.posix_memalign(block, alignment, size);
	}
	if (!error) {
		(void)NOTE_OF(posix_memalign, *block, size, turn);
	}
	return error;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	if (!refit_heap_is_ready() || !refit_beneath.aligned_alloc) {
		return lacks();
	}
	uint64_t turn = refit_heap_turn();
	void *block = refit_beneath.aligned_alloc(alignment, size);
	block = REFIT_OR_AGAIN(block, size, refit_beneath.aligned_alloc(alignment, size));
	return NOTE_OF(aligned_alloc, block, size, turn);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
	if (!refit_heap_is_ready() || !refit_beneath.memalign) {
		return lacks();
	}
	uint64_t turn = refit_heap_turn();
	void *block = refit_beneath.memalign(alignment, size);
	block = REFIT_OR_AGAIN(block, size, refit_beneath.memalign(alignment, size));
	return NOTE_OF(memalign, block, size, turn);
}

EXPORT void *valloc(size_t size)
{
	if (!refit_heap_is_ready() || !refit_beneath.valloc) {
		return lacks();
	}
	uint64_t turn = refit_heap_turn();
	void *block = refit_beneath.valloc(size);
	return NOTE_OF(valloc, block, size, turn);
}

EXPORT void *pvalloc(size_t size)
{
	if (!refit_heap_is_ready() || !refit_beneath.pvalloc) {
		return lacks();
	}
	uint64_t turn = refit_heap_turn();
	void *block = refit_beneath.pvalloc(size);
	return NOTE_OF(pvalloc, block, size, turn);
}

/* ---- for the C++ operators and the sync library ------------------------- */

EXPORT int refit_heap_is_of_allocator(const void *function)
{
	return refit_heap_is_found() &&
	       refit_is_in(refit_object_of(*(void **)&refit_beneath.malloc),
			   function);
}

/* An operator of an allocator's own seldom calls malloc: without the table of live
 * blocks it is taken not to. */
static int is_noted(const void *block, size_t size)
{
	return refit_heap_state_now() == REFIT_HEAP_COUNTING &&
	       refit_shadow_look(block).requested == size;
}

EXPORT void refit_heap_note(void *block, size_t size)
{
	if (block && refit_heap_is_ready() && !is_noted(block, size)) {
		refit_note(block, size, REFIT_NO_TURN);
	}
}

EXPORT void refit_heap_forget(void *block)
{
	if (block && (refit_heap_state_now() == REFIT_HEAP_TABLELESS ||
		      (refit_heap_state_now() == REFIT_HEAP_COUNTING &&
		       refit_shadow_look(block).usable))) {
		refit_forget(block);
	}
}

EXPORT void *refit_heap_malloc_beneath(void)
{
	return refit_heap_is_found() ? *(void **)&refit_beneath.malloc : NULL;
}
