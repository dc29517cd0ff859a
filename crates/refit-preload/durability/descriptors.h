/* What was told of the files of this process's descriptors. What is not known costs an
 * event more, and is never wrong: each call that changes a descriptor forgets it. */
#ifndef REFIT_DESCRIPTORS_H
#define REFIT_DESCRIPTORS_H

#include "events.h"

/* Descriptors beyond these are never known. */
#define REFIT_DESCRIPTORS 32768

/* A write to the descriptor was told when so many syncs had begun. */
#define REFIT_DESCRIPTOR_UNKNOWN 0
#define REFIT_DESCRIPTOR_NO_FILE 1 /* a socket, a pipe, a terminal */

extern HIDDEN uint64_t refit_descriptors[REFIT_DESCRIPTORS];

/* What else is known of it, as bits. */
#define REFIT_PATH_IS_TOLD 1	  /* refit has its path */
#define REFIT_SYNC_IS_KNOWN 2	  /* whether its writes are synchronous; ... */
#define REFIT_IS_SYNCHRONOUS 4 /* ... they are */
extern HIDDEN uint8_t refit_descriptor_bits[REFIT_DESCRIPTORS];

/* The bits; 0 where they are not known. */
static inline unsigned refit_bits_of(int fd)
{
	return (unsigned)fd < REFIT_DESCRIPTORS
		       ? __atomic_load_n(&refit_descriptor_bits[fd],
					 __ATOMIC_RELAXED)
		       : 0;
}

static inline void refit_set_bits(int fd, unsigned bits)
{
	if ((unsigned)fd < REFIT_DESCRIPTORS) {
		__atomic_fetch_or(&refit_descriptor_bits[fd], (uint8_t)bits,
				  __ATOMIC_RELAXED);
	}
}

/* Puts the path of an open file where refit does not have it from an event before. */
void refit_put_new_path_of(char to[REFIT_FILE_EVENT_PATH], int fd);

static inline void refit_descriptor_is(int fd, uint64_t state)
{
	if ((unsigned)fd < REFIT_DESCRIPTORS) {
		__atomic_store_n(&refit_descriptors[fd], state,
				 __ATOMIC_RELAXED);
	}
}

static inline void refit_forget_descriptor(int fd)
{
	if (refit_events) {
		refit_descriptor_is(fd, REFIT_DESCRIPTOR_UNKNOWN);
		if ((unsigned)fd < REFIT_DESCRIPTORS) {
			__atomic_store_n(&refit_descriptor_bits[fd], 0,
					 __ATOMIC_RELAXED);
		}
	}
}

#endif
