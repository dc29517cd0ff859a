/* Memory of the library's own, which never comes from malloc. It is never given
 * back. */
#ifndef REFIT_HEAP_OWN_MEMORY_H
#define REFIT_HEAP_OWN_MEMORY_H

#include <stddef.h>

/* Zeroed, at a multiple of 64; NULL when the kernel has none. */
void *refit_own_memory(size_t size);

/* The counters are there, so that regions can be told of. */
void refit_own_memory_is_ready(void);

#endif
