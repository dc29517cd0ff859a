/* Pages of the file that the counters are in. */
#ifndef REFIT_HEAP_FILE_PAGES_H
#define REFIT_HEAP_FILE_PAGES_H

#include <stddef.h>

/* Pages of the file are written only when they are there. 0: they cannot be had. */
int refit_heap_allocate(const void *page, size_t size);

#endif
