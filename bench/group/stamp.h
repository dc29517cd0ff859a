/* How a written block says who wrote it, and in which order. */
#ifndef STAMP_H
#define STAMP_H

#include <stdint.h>

enum { BLOCK = 4096, WRITERS = 256 };
#define STAMP 0x7469666572u

struct stamp {
	uint64_t mark;
	uint64_t writer;
	uint64_t serial; /* rises, from run to run as well */
};

#endif
