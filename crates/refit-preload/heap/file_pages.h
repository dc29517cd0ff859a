/* Pages of the file that the counters are in. */
#ifndef REFIT_HEAP_FILE_PAGES_H
#define REFIT_HEAP_FILE_PAGES_H

#include <stddef.h>

/* Allocates pages of the file, as has to be done before they are written. 0: that
 * failed. */
int refit_heap_allocate(const void *at, size_t size);

#endif
