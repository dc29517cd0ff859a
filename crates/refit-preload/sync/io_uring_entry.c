#include "io_uring_entry.h"

#include <fcntl.h>
#include <linux/io_uring.h>

#include "decision.h"
#include "sync.h"

#define SYNC_BITS (O_SYNC | O_DSYNC)
#define RWF_SYNC_BITS 0x6 /* RWF_DSYNC | RWF_SYNC, pwritev2(2) */

/* Whether a sync of this descriptor is suppressed; the kernel is to refuse what
 * is not a file, and what is no range of one. Of a registered file only the
 * io_uring knows which it is. */
static int is_off(const struct io_uring_sqe *sqe, int is_registered)
{
	int has_range = sqe->opcode == IORING_OP_SYNC_FILE_RANGE;
	return is_registered ? refit_all_off()
			     : refit_range_is_off(sqe->fd,
						  has_range ? (off64_t)sqe->off : 0,
						  has_range ? sqe->len : 0);
}

/* A sync with any other field filled in is left to the kernel to refuse
 * (io_uring/sync.c); so is an fsync of a negative offset, which some kernels
 * refuse. */
static int is_plain_sync(const struct io_uring_sqe *sqe)
{
	if (sqe->opcode == IORING_OP_FSYNC && (off64_t)sqe->off < 0) {
		return 0;
	}
	unsigned known = sqe->opcode == IORING_OP_FSYNC
				 ? IORING_FSYNC_DATASYNC
				 : SYNC_FILE_RANGE_WAIT_BEFORE |
					   SYNC_FILE_RANGE_WRITE |
					   SYNC_FILE_RANGE_WAIT_AFTER;
	return !(sqe->fsync_flags & ~known) && !sqe->addr && !sqe->buf_index &&
	       !sqe->splice_fd_in;
}

/* An operation that does nothing and completes, in its place in the chain. */
static void make_nop(struct io_uring_sqe *sqe)
{
	sqe->opcode = IORING_OP_NOP;
	sqe->fd = -1;
	sqe->off = 0;
	sqe->len = 0;
	sqe->rw_flags = 0; /* NOP has flags of its own since Linux 6.10 */
}

/* The same, except that the io_uring looks up the file and checks the range. */
static void make_probe(struct io_uring_sqe *sqe)
{
	if (sqe->opcode == IORING_OP_FSYNC) {
		/* Of any range of a file. */
		sqe->off = 0;
		sqe->len = 0;
	}
	sqe->opcode = IORING_OP_SYNC_FILE_RANGE;
	sqe->sync_range_flags = 0;
}

/* A ring that is set up disabled may then be restricted to operations of which
 * NOP is none (IORING_REGISTER_RESTRICTIONS); one that polls for completions
 * refuses a sync and takes a NOP. */
#define REFUSES_SWAPPED (IORING_SETUP_R_DISABLED | IORING_SETUP_IOPOLL)

static void swap_sync(struct io_uring_sqe *sqe, unsigned setup_flags)
{
	int is_registered = (sqe->flags & IOSQE_FIXED_FILE) != 0;
	int is_swapped = !(setup_flags & REFUSES_SWAPPED) &&
			 is_plain_sync(sqe) && is_off(sqe, is_registered);
	if (!refit_counted(REFIT_CALL_IO_URING_SYNC, is_swapped)) {
		return;
	}
	if (is_registered) {
		make_probe(sqe);
	} else {
		make_nop(sqe);
	}
}

void refit_swap_entry(struct io_uring_sqe *sqe, unsigned setup_flags)
{
	int is_registered = (sqe->flags & IOSQE_FIXED_FILE) != 0;
	switch (sqe->opcode) {
	case IORING_OP_FSYNC:
	case IORING_OP_SYNC_FILE_RANGE:
		swap_sync(sqe, setup_flags);
		break;
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
	case IORING_OP_WRITE_FIXED:
		if ((unsigned)sqe->rw_flags & RWF_SYNC_BITS &&
		    refit_counted(REFIT_CALL_IO_URING_SYNC,
			    is_off(sqe, is_registered))) {
			sqe->rw_flags &= ~RWF_SYNC_BITS;
		}
		break;
	case IORING_OP_OPENAT:
		if (sqe->open_flags & SYNC_BITS &&
		    !(sqe->open_flags & O_PATH) &&
		    refit_counted(REFIT_CALL_OPEN_SYNC,
			    refit_all_off())) {
			sqe->open_flags &= ~(unsigned)SYNC_BITS;
		}
		break;
	default:
		break;
	}
}
