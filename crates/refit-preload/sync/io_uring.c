#define _GNU_SOURCE
#include "io_uring.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "decision.h"

#define SYNC_BITS (O_SYNC | O_DSYNC)
#define RWF_SYNC_BITS 0x6 /* RWF_DSYNC | RWF_SYNC, pwritev2(2) */

/* ---- io_uring ------------------------------------------------------------ */

/* The head of liburing's struct io_uring, the same since 2.0 (liburing.h). */
struct ring {
	unsigned *head;
	unsigned *tail;
	unsigned *mask;
	unsigned *entries;
	unsigned *flags;
	unsigned *dropped;
	unsigned *array;
	struct io_uring_sqe *sqes;
	unsigned sqe_head;
	unsigned sqe_tail;
	size_t ring_size;
	void *ring_pointer;
	unsigned pad[4];
	void *completion[9];
	unsigned pad2[4];
	unsigned setup_flags;
};

static int rings_denied(void)
{
	return refit.policy && refit.policy->flags & REFIT_POLICY_DENY_IO_URING;
}

static void ring_set_up(unsigned setup_flags)
{
	if (setup_flags & IORING_SETUP_IOPOLL) {
		refit.iopoll = 1;
	}
	/* What comes to the filter is counted there. */
	if (!refit_notified()) {
		refit_seen_and_real(REFIT_CALL_IO_URING_SETUP);
	}
}

long refit_io_uring_setup(long entries, void *parameters)
{
	if (rings_denied()) {
		return -ENOSYS;
	}
	long ring = prim_syscall(SYS_io_uring_setup, entries, parameters, 0, 0);
	/* The flags lie behind two words (io_uring_setup(2)); the kernel has
	 * read them when it returns a ring. */
	if (ring >= 0) {
		ring_set_up(((const unsigned *)parameters)[2]);
		refit_flag(REFIT_IMAGE_OWN_IO_URING);
	}
	return ring;
}

/* liburing makes its system calls inline, so its own entries are the door. */
static int set_up(int (*next)(unsigned, void *, void *), unsigned entries,
		  void *ring, struct io_uring_params *p)
{
	if (!next || rings_denied()) {
		return -ENOSYS;
	}
	unsigned flags = p->flags;
	int result = next(entries, ring, p);
	if (result >= 0) {
		ring_set_up(flags);
	}
	return result;
}

EXPORT int io_uring_queue_init_params(unsigned entries, void *ring,
				      struct io_uring_params *p);
EXPORT int io_uring_queue_init_params(unsigned entries, void *ring,
				      struct io_uring_params *p)
{
	NEXT_FOR_CALLER(next, io_uring_queue_init_params)
	return set_up(next, entries, ring, p);
}

/* liburing's own does just this, and its call comes back to us or not, by how
 * it was linked: so it is done here, once. */
EXPORT int io_uring_queue_init(unsigned entries, void *ring, unsigned flags);
EXPORT int io_uring_queue_init(unsigned entries, void *ring, unsigned flags)
{
	NEXT_FOR_CALLER(next, io_uring_queue_init_params)
	struct io_uring_params p = {.flags = flags};
	return set_up(next, entries, ring, &p);
}

EXPORT int io_uring_queue_init_mem(unsigned entries, void *ring,
				   struct io_uring_params *p, void *buffer,
				   size_t size);
EXPORT int io_uring_queue_init_mem(unsigned entries, void *ring,
				   struct io_uring_params *p, void *buffer,
				   size_t size)
{
	NEXT_FOR_CALLER(next, io_uring_queue_init_mem)
	if (!next || rings_denied()) {
		return -ENOSYS;
	}
	unsigned flags = p->flags;
	int result = next(entries, ring, p, buffer, size);
	if (result >= 0) {
		ring_set_up(flags);
	}
	return result;
}

/* Whether a sync of this descriptor goes; the kernel is to refuse what is no
 * file. Of a registered file only the ring knows which it is. */
static int goes(int fd, int is_registered)
{
	if (is_registered) {
		return !refit.by_path && refit.decision == REFIT_DECISION_OFF;
	}
	return refit_decide(fd) == REFIT_DECISION_OFF && !refit.own_seccomp &&
	       prim_syscall(SYS_sync_file_range, fd, 0, 0, 0) == 0;
}

static int counted(enum refit_call call, int is_suppressed)
{
	struct refit_counter *c = refit_counter(call);
	if (!is_suppressed) {
		refit_seen_and_real(call);
	} else {
		refit_seen(c);
		refit_suppressed(c);
	}
	return is_suppressed;
}

/* The kernel refuses a sync with anything else filled in (io_uring/sync.c): it
 * shall. */
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

/* One that does nothing either and asks the ring for its file on the decision. */
static void make_probe(struct io_uring_sqe *sqe)
{
	sqe->opcode = IORING_OP_SYNC_FILE_RANGE;
	sqe->sync_range_flags = 0;
}

static void swap_sync(struct io_uring_sqe *sqe)
{
	int is_registered = (sqe->flags & IOSQE_FIXED_FILE) != 0;
	if (!counted(REFIT_CALL_IO_URING_SYNC,
		     is_plain_sync(sqe) && goes(sqe->fd, is_registered))) {
		return;
	}
	if (is_registered) {
		make_probe(sqe);
	} else {
		make_nop(sqe);
	}
}

static void swap(struct io_uring_sqe *sqe)
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
		    counted(REFIT_CALL_IO_URING_SYNC,
			    goes(sqe->fd, is_registered))) {
			sqe->rw_flags &= ~RWF_SYNC_BITS;
		}
		break;
	case IORING_OP_OPENAT:
		if (sqe->open_flags & SYNC_BITS &&
		    !(sqe->open_flags & O_PATH) &&
		    counted(REFIT_CALL_OPEN_SYNC,
			    !refit.by_path && refit.decision == REFIT_DECISION_OFF)) {
			sqe->open_flags &= ~(unsigned)SYNC_BITS;
		}
		break;
	default:
		break;
	}
}

/* All that is filled in and not yet handed to the kernel. */
static void swap_pending(const struct ring *ring)
{
	unsigned shift = ring->setup_flags & IORING_SETUP_SQE128 ? 1 : 0;
	for (unsigned i = ring->sqe_head; i != ring->sqe_tail; i++) {
		swap(&ring->sqes[(i & *ring->mask) << shift]);
	}
}

#define DEFINE_SUBMIT(name, PARAMETERS, ARGUMENTS)                             \
	EXPORT int name PARAMETERS;                                            \
	EXPORT int name PARAMETERS                                             \
	{                                                                      \
		NEXT_FOR_CALLER(next, name)                                    \
		if (!next) {                                                   \
			return -ENOSYS;                                        \
		}                                                              \
		swap_pending(ring);                                            \
		return next ARGUMENTS;                                         \
	}

DEFINE_SUBMIT(io_uring_submit, (void *ring), (ring))
DEFINE_SUBMIT(io_uring_submit_and_wait, (void *ring, unsigned wait), (ring, wait))
DEFINE_SUBMIT(io_uring_submit_and_wait_timeout,
	      (void *ring, void *done, unsigned wait, void *time, void *mask),
	      (ring, done, wait, time, mask))
DEFINE_SUBMIT(io_uring_submit_and_get_events, (void *ring), (ring))

/* ---- io_submit ----------------------------------------------------------- */

/* More at once than programs submit; of a longer list the rest is real. */
enum { MOST = 64 };

/* Reads or writes the program's memory, which may be anything, as the kernel
 * does; returns the bytes that could be. */
static long carry(long nr, const struct iovec *ours, const struct iovec *theirs,
		  size_t count)
{
	long pid = prim_syscall(SYS_getpid, 0, 0, 0, 0);
	long n = prim_syscall6(nr, pid, (long)ours, 1, (long)theirs,
			       (long)count, 0);
	return n < 0 ? 0 : n;
}

/* The first blocks of the list, as far as they can be read. */
static size_t read_blocks(struct iocb **blocks, long count,
			  struct iocb *list[MOST], struct iocb copies[MOST])
{
	struct iovec theirs[MOST];
	size_t most = count < MOST ? (size_t)count : MOST;
	struct iovec to = {list, most * sizeof *list};
	struct iovec from = {blocks, most * sizeof *list};
	most = (size_t)carry(SYS_process_vm_readv, &to, &from, 1) /
	       sizeof *list;
	for (size_t i = 0; i < most; i++) {
		theirs[i] = (struct iovec){list[i], sizeof *copies};
	}
	to = (struct iovec){copies, most * sizeof *copies};
	return (size_t)carry(SYS_process_vm_readv, &to, theirs, most) /
	       sizeof *copies;
}

static int write_operation(struct iocb *block, uint16_t operation)
{
	struct iovec ours = {&operation, sizeof operation};
	struct iovec theirs = {&block->aio_lio_opcode, sizeof operation};
	return carry(SYS_process_vm_writev, &ours, &theirs, 1) ==
	       sizeof operation;
}

/* A read or write of nothing, which completes with 0 as a sync does: the kernel
 * has no operation that does nothing (IOCB_CMD_NOOP is refused, io_submit(2)).
 */
static uint16_t nothing_for(const struct iocb *block)
{
	long flags = prim_syscall(SYS_fcntl, block->aio_fildes, F_GETFL, 0, 0);
	return (flags & O_ACCMODE) == O_RDONLY ? IOCB_CMD_PREAD
					       : IOCB_CMD_PWRITE;
}

static int is_sync(const struct iocb *block)
{
	return block->aio_lio_opcode == IOCB_CMD_FSYNC ||
	       block->aio_lio_opcode == IOCB_CMD_FDSYNC;
}

/* The kernel refuses a sync that has a buffer, length, offset or flags
 * (fs/aio.c aio_fsync): it shall. */
static int is_plain(const struct iocb *block)
{
	struct stat st;
	/* Nothing can be read from a directory, and it can be synced. */
	return prim_syscall(SYS_fstat, block->aio_fildes, &st, 0, 0) == 0 &&
	       S_ISREG(st.st_mode) && !block->aio_buf && !block->aio_nbytes &&
	       !block->aio_offset && !block->aio_rw_flags;
}

long refit_io_submit(void *context, long count, struct iocb **blocks)
{
	struct iocb *list[MOST], copies[MOST];
	unsigned char swapped[MOST] = {0};
	/* The program's own filter might kill it for being looked at. */
	size_t known = count > 0 && !refit.own_seccomp
			       ? read_blocks(blocks, count, list, copies)
			       : 0;
	for (size_t i = 0; i < known; i++) {
		const struct iocb *block = &copies[i];
		if (is_sync(block)) {
			swapped[i] = is_plain(block) &&
				     goes((int)block->aio_fildes, 0) &&
				     write_operation(list[i],
						     nothing_for(block));
			counted(REFIT_CALL_IO_SUBMIT, swapped[i]);
		}
	}
	long result = prim_syscall(SYS_io_submit, context, count, blocks, 0);
	/* The blocks are the program's, and the kernel has read them. */
	while (known-- > 0) {
		if (swapped[known]) {
			write_operation(list[known],
					copies[known].aio_lio_opcode);
		}
	}
	return result;
}

/* libaio returns -errno (io_submit(3)). */
EXPORT int io_submit(void *context, long count, struct iocb **blocks);
EXPORT int io_submit(void *context, long count, struct iocb **blocks)
{
	return (int)refit_io_submit(context, count, blocks);
}
