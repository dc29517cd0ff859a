/* What was requested, and what is usable, of each live block, without a header:
 * one byte beside each 8 bytes of heap, in a table of three levels. */
#ifndef REFIT_HEAP_SHADOW_H
#define REFIT_HEAP_SHADOW_H

#include <stddef.h>

struct refit_block {
	size_t requested;
	size_t usable; /* 0: no such block */
};

/* Notes a block, and returns what was noted at its address before. 0 in `kept`
 * when there is no memory for the table, or the address is not one of a
 * program's. */
struct refit_block refit_shadow_put(const void *at, struct refit_block block,
				    int *kept);

/* Takes a block out of the table. */
struct refit_block refit_shadow_take(const void *at);

/* The block there, which stays. */
struct refit_block refit_shadow_look(const void *at);

#endif
