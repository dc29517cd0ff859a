/* Asynchronous syncs of the kernel's own: io_uring and io_submit. What a
 * library's exported entry submits can be seen, and swapped, before it goes;
 * what a program writes into a ring by itself cannot. */
#ifndef REFIT_IO_URING_H
#define REFIT_IO_URING_H

#include "state.h"

/* io_uring_setup by number: entries and parameters are the program's. */
long refit_io_uring_setup(long entries, void *parameters);

/* io_submit by number, in one: -errno on failure. */
long refit_io_submit(void *context, long count, struct iocb **blocks);

#endif
