/* io_uring, through liburing's exported functions: what they submit can be
 * seen, and swapped, before it is submitted. own_ring.h has the rings that a
 * program fills by itself. */
#ifndef REFIT_IO_URING_H
#define REFIT_IO_URING_H

/* io_uring_setup by number: both arguments are the program's. */
long refit_io_uring_setup(long entries, void *parameters);

#endif
