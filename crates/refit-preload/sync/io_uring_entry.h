/* An operation in the submission queue of an io_uring. */
#ifndef REFIT_IO_URING_ENTRY_H
#define REFIT_IO_URING_ENTRY_H

struct io_uring_sqe;

/* Swaps an operation that is about to be submitted to a ring that was set up with
 * these flags, and counts it. */
void refit_swap_entry(struct io_uring_sqe *sqe, unsigned setup_flags);

#endif
