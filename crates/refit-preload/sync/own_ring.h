/* An io_uring that a program sets up, maps and submits to through the C library
 * by itself: io_uring_setup and io_uring_enter by syscall(3), mmap between them.
 * The submission queue is then known, and is changed before the kernel reads it.
 *
 * A ring is left alone, and counted as unseen, when
 *  - the kernel reads it by itself (IORING_SETUP_SQPOLL), or its memory is the
 *    program's (NO_MMAP), or it was set up with a flag that is unknown here;
 *  - more than one thread submits to it: an entry could be used again while it is
 *    looked at;
 *  - it is submitted to by the index of a registered ring
 *    (IORING_REGISTER_RING_FDS), by another descriptor than the first, or in a
 *    forked child;
 *  - the kernel's head is not where the program's queue says: the descriptor is
 *    another ring's by now.
 * Not noticed is memory of a ring that is unmapped by an instruction of the
 * program's own, or moved by mremap(3), while it goes on to submit by syscall(3).
 */
#ifndef REFIT_OWN_RING_H
#define REFIT_OWN_RING_H

struct io_uring_params;

/* After a ring was set up by number with these flags. */
void refit_own_ring_set_up(int fd, unsigned flags,
			   const struct io_uring_params *p);

/* io_uring_enter by number: -errno on failure. */
long refit_io_uring_enter(long fd, long count, long wait, long flags,
			  long argument, long size);

#endif
