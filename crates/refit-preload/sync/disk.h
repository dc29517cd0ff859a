/* The emulated disk: when a flush is done, and which one fails. Its only
 * state is struct refit_flushes, which all processes of the tree share. Used
 * by the preload, and by refit when it answers for programs that the preload
 * does not reach. */
#ifndef REFIT_DISK_H
#define REFIT_DISK_H

#include "session.h"

/* The errno with which the flush that begins now fails, or 0. */
uint32_t refit_disk_fault(const struct refit_disk *disk,
			  struct refit_flushes *flushes);

/* The time, CLOCK_MONOTONIC in ns, at which a flush that began at began_ns is
 * done, as seen at now_ns: one queue for each device, one flush at a time; those
 * that come while one runs share the next. */
uint64_t refit_disk_until(const struct refit_disk *disk,
			  struct refit_flushes *flushes, uint64_t device,
			  uint64_t began_ns, uint64_t now_ns);

#endif
