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
	}
}

#endif
