/* Memory of the library's own, which never comes from malloc. It is never given
 * back. */
#ifndef REFIT_HEAP_OWN_MEMORY_H
#define REFIT_HEAP_OWN_MEMORY_H

#include <stddef.h>

/* Zeroed, at a multiple of 64; NULL when the kernel has none. */
void *refit_own_memory(size_t size);

typedef void refit_region_listener(const void *at, size_t size);

/* Has `to` called for each region: at once for those that are mapped already, and
 * later when one is mapped. */
void refit_own_memory_tell(refit_region_listener *to);

/* Before anything else: the address space is limited, so one small region is all. */
void refit_own_memory_spare(void);

/* Unmaps all. */
void refit_own_memory_end(void);

#endif
