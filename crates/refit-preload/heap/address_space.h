/* Beneath RLIMIT_AS or RLIMIT_DATA there is no table of live blocks (struct
 * refit_heap_class), and all that is mapped is a small part of the limit. */
#ifndef REFIT_HEAP_ADDRESS_SPACE_H
#define REFIT_HEAP_ADDRESS_SPACE_H

#include <stddef.h>
#include <stdint.h>

/* Below this limit nothing is counted. */
#define REFIT_LEAST_LIMIT ((uint64_t)64 << 20) /* bytes */
/* At most one in so many bytes of the limit is mapped. */
#define REFIT_SHARE_OF_LIMIT 64

/* The smaller of both limits, in bytes; UINT64_MAX: there is none. */
uint64_t refit_address_space(void);

/* How much of the file is mapped. */
struct refit_heap_room {
	size_t processes;
	size_t places;
};

struct refit_heap_room refit_heap_room(uint64_t limit);

/* Bytes of the file that these take: from its beginning, and from the samples on. */
size_t refit_processes_size(size_t processes);
size_t refit_places_size(size_t places);

#endif
