#include "io_uring_entry.h"

#include <fcntl.h>
#include <linux/io_uring.h>

#include "decision.h"
#include "sync.h"

#define SYNC_BITS (O_SYNC | O_DSYNC)
#define RWF_SYNC_BITS 0x6 /* RWF_DSYNC | RWF_SYNC, pwritev2(2) */

/* Whether a sync of this descriptor is suppressed; the kernel is to refuse what
 * is not a file. Of a registered file only the io_uring knows which it is. */
static int is_off(int fd, int is_registered)
{
	return is_registered ? refit_all_off() : refit_sync_is_off(fd);
}

/* A sync with any other field filled in is left to the kernel to refuse
 * (io_uring/sync.c). */
static int is_plain_sync(const struct io_uring_sqe *sqe)
{
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

/* The same, except that the io_uring looks up the file. */
static void make_probe(struct io_uring_sqe *sqe)
{
	sqe->opcode = IORING_OP_SYNC_FILE_RANGE;
	sqe->sync_range_flags = 0;
}

static void swap_sync(struct io_uring_sqe *sqe)
{
	int is_registered = (sqe->flags & IOSQE_FIXED_FILE) != 0;
	if (!refit_counted(REFIT_CALL_IO_URING_SYNC,
		     is_plain_sync(sqe) && is_off(sqe->fd, is_registered))) {
		return;
	}
	if (is_registered) {
		make_probe(sqe);
	} else {
		make_nop(sqe);
	}
}

void refit_swap_entry(struct io_uring_sqe *sqe)
{
	int is_registered = (sqe->flags & IOSQE_FIXED_FILE) != 0;
	switch (sqe->opcode) {
	case IORING_OP_FSYNC:
	case IORING_OP_SYNC_FILE_RANGE:
		swap_sync(sqe);
		break;
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
	case IORING_OP_WRITE_FIXED:
		if ((unsigned)sqe->rw_flags & RWF_SYNC_BITS &&
		    refit_counted(REFIT_CALL_IO_URING_SYNC,
			    is_off(sqe->fd, is_registered))) {
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
