/* The state of the library. */
#ifndef REFIT_HEAP_H
#define REFIT_HEAP_H

#include <stddef.h>

#include "prim.h"

enum refit_heap_state {
	REFIT_HEAP_NEW,     /* nothing was called yet */
	REFIT_HEAP_FINDING, /* the allocator beneath is being looked up, or it
			     * is found out whether calls come to us */
	REFIT_HEAP_OFF,     /* calls are passed on, and nothing else */
	REFIT_HEAP_COUNTING,
	REFIT_HEAP_TABLELESS, /* the same, without the table of live blocks */
};

extern HIDDEN int refit_heap_state;

/* Leaves the state REFIT_HEAP_NEW. */
void refit_heap_begin(void);

/* Leaves the state REFIT_HEAP_NEW, if it is still that. Not 0: the allocator beneath
 * can be called. */
int refit_heap_is_found(void);

/* For the library of the C++ operators: whether a function is of the object that
 * malloc is of; a block was given out, or is about to be taken back. What malloc
 * has counted already is left alone. */
int refit_heap_is_of_allocator(const void *function);
void refit_heap_note(void *block, size_t size);
void refit_heap_forget(void *block);

/* The allocator's malloc. The sync library knows this one by the name. */
void *refit_heap_malloc_beneath(void);

#endif
