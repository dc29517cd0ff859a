/* Which part of the file belongs to this process. */
#ifndef REFIT_HEAP_PROCESS_BLOCK_H
#define REFIT_HEAP_PROCESS_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "own_counters.h"

/* Copies the private counters to the file, but for the pid. */
void refit_heap_copy_to_file(ptrdiff_t distance);

/* For a process that was just forked: gives it a block of its own. Of its threads
 * that with the slot `kept` goes on; the other slots are free. 0: there is no room,
 * or no file yet. */
ptrdiff_t refit_heap_find_distance(const struct refit_heap_slot *kept,
				   uint8_t *taken);

#endif
