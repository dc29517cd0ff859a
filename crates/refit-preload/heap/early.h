/* Memory for those that allocate while the allocator beneath is looked up: dlsym
 * itself, on some systems. It is never given back. */
#ifndef REFIT_HEAP_EARLY_H
#define REFIT_HEAP_EARLY_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed, at a multiple of 16; NULL when there is no more. */
void *refit_early_allocate(size_t size);

extern char refit_early[1 << 14];

static inline int refit_is_early(const void *block)
{
	return (uintptr_t)block - (uintptr_t)refit_early < sizeof refit_early;
}

size_t refit_early_size(const void *block);

#endif
