/* Memory of the library's own, which never comes from malloc. It is never given
 * back. */
#ifndef REFIT_HEAP_OWN_MEMORY_H
#define REFIT_HEAP_OWN_MEMORY_H

#include <stddef.h>

/* Zeroed, at a multiple of 64; NULL when the kernel has none. */
void *refit_own_memory(size_t size);

typedef void refit_region_listener(const void *at, size_t size);

/* Tells of each region that is mapped, and of those that are mapped already. */
void refit_own_memory_tell(refit_region_listener *to);

#endif
