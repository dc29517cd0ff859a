/* Asynchronous I/O but for io_uring.
 *
 * aio_fsync and lio_listio of the C library are counted and left alone: they
 * have to complete through aio_error and aio_return and deliver their signal. A
 * helper thread of the C library makes their system calls, by its own instructions:
 * where a filter lies beneath, that answers them.
 * Syncs that io_submit is given are swapped. */
#include "aio.h"

#include <alloca.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "next.h"
#include "own_seccomp.h"
#include "slot.h"
#include "sync.h"

/* ---- the C library's ----------------------------------------------------- */

/* glibc's internal operations of aio_fsync; a caller who puts them into a list
 * gets a sync too (glibc sysdeps/pthread/aio_misc.h). */
enum { LIO_DSYNC_OPERATION = 3, LIO_SYNC_OPERATION = 4 };

struct aio_head {
	int descriptor;
	int operation;
};

/* Where refit is asked, it counts the helper thread's call. */
static void count_helper(enum refit_call call)
{
	if (!refit_guarded()) {
		refit_counted(call, refit_answered());
	}
}

static int missing(void)
{
	errno = ENOSYS;
	return -1;
}

#define DEFINE_AIO_FSYNC(name)                                                 \
	EXPORT int name(int operation, struct aiocb *block);                   \
	EXPORT int name(int operation, struct aiocb *block)                    \
	{                                                                      \
		NEXT_FOR_CALLER(next, name)                                    \
		if (!next) {                                                   \
			return missing();                                      \
		}                                                              \
		count_helper(REFIT_CALL_AIO_FSYNC);                            \
		return next(operation, block);                                 \
	}

DEFINE_AIO_FSYNC(aio_fsync)
DEFINE_AIO_FSYNC(aio_fsync64)

#define DEFINE_LIO_LISTIO(name)                                                \
	EXPORT int name(int mode, struct aiocb *const *list, int count,        \
			void *event);                                          \
	EXPORT int name(int mode, struct aiocb *const *list, int count,        \
			void *event)                                           \
	{                                                                      \
		NEXT_FOR_CALLER(next, name)                                    \
		if (!next) {                                                   \
			return missing();                                      \
		}                                                              \
		for (int i = 0; i < count; i++) {                              \
			const struct aio_head *head = (const void *)list[i];   \
			if (head && (head->operation == LIO_DSYNC_OPERATION || \
				     head->operation == LIO_SYNC_OPERATION)) { \
				count_helper(REFIT_CALL_LIO_LISTIO);           \
			}                                                      \
		}                                                              \
		return next(mode, list, count, event);                         \
	}

DEFINE_LIO_LISTIO(lio_listio)
DEFINE_LIO_LISTIO(lio_listio64)

/* ---- the kernel's -------------------------------------------------------- */

/* More than programs submit at once; the rest of a longer list is real. */
enum { MOST = 64 };

/* Reads or writes memory of the program by pointers that may be anything, in
 * the way in which the kernel does; returns how many bytes that were. */
static long carry(long nr, const struct iovec *ours, const struct iovec *theirs,
		  size_t count)
{
	long pid = prim_syscall(SYS_getpid, 0, 0, 0, 0);
	long n = prim_syscall6(nr, pid, (long)ours, 1, (long)theirs,
			       (long)count, 0);
	return n < 0 ? 0 : n;
}

/* The first blocks of the list, MOST at most, as far as they can be read. */
static size_t read_blocks(struct iocb **blocks, long count,
			  struct iocb **list, struct iocb *copies)
{
	size_t most = (size_t)count;
	struct iovec *theirs = alloca(most * sizeof *theirs);
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
 * Negative for a file that is open for neither (O_WRONLY | O_RDWR, open(2)), and
 * can be synced. */
static int nothing_for(const struct iocb *block)
{
	long flags = prim_syscall(SYS_fcntl, block->aio_fildes, F_GETFL, 0, 0);
	switch (flags & O_ACCMODE) {
	case O_RDONLY:
	case O_RDWR:
		return IOCB_CMD_PREAD;
	case O_WRONLY:
		return IOCB_CMD_PWRITE;
	default:
		return -1;
	}
}

static int is_sync(const struct iocb *block)
{
	return block->aio_lio_opcode == IOCB_CMD_FSYNC ||
	       block->aio_lio_opcode == IOCB_CMD_FDSYNC;
}

/* A sync that has a buffer, length, offset or flags is left to the kernel to
 * refuse (fs/aio.c aio_fsync). Of a flag other than IOCB_FLAG_RESFD, as that of a
 * priority, a read or write makes more than a sync does. */
static int is_plain(const struct iocb *block)
{
	struct stat st;
	if (block->aio_flags & ~(uint32_t)IOCB_FLAG_RESFD) {
		return 0;
	}
	/* Nothing can be read from a directory, and it can be synced. */
	return prim_syscall(SYS_fstat, block->aio_fildes, &st, 0, 0) == 0 &&
	       S_ISREG(st.st_mode) && !block->aio_buf && !block->aio_nbytes &&
	       !block->aio_offset && !block->aio_rw_flags;
}

long refit_io_submit(void *context, long count, struct iocb **blocks)
{
	/* As many as there are: a thread's stack may be small, and a signal's
	 * too. */
	size_t most = count > MOST ? MOST : count > 0 ? (size_t)count : 1;
	struct iocb **list = alloca(most * sizeof *list);
	struct iocb *copies = alloca(most * sizeof *copies);
	unsigned char swapped[MOST] = {0};
	size_t known = count > 0 && !refit_beneath_own_seccomp()
			       ? read_blocks(blocks, (long)most, list, copies)
			       : 0;
	for (size_t i = 0; i < known; i++) {
		const struct iocb *block = &copies[i];
		if (is_sync(block)) {
			int nothing = is_plain(block) ? nothing_for(block) : -1;
			swapped[i] = nothing >= 0 &&
				     refit_sync_is_off((int)block->aio_fildes) &&
				     write_operation(list[i], (uint16_t)nothing);
			refit_counted(REFIT_CALL_IO_SUBMIT, swapped[i]);
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
