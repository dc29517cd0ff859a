/* The fsync family. A suppressed call returns what the kernel would have
 * returned, found by a probe that does no I/O:
 *
 *   descriptors  sync_file_range(fd, 0, 0, 0): EBADF for what is closed or
 *                O_PATH, ESPIPE for what is no file, else 0
 *   mappings     msync with MS_ASYNC, which validates and does nothing
 *
 * Only 0, EBADF and ESPIPE are taken for an answer; a sandbox's EPERM or
 * ENOSYS leads to the real call.
 */
#define _GNU_SOURCE
#include "sync.h"

#include <fcntl.h>
#include <sys/mman.h>

/* Cancellation points stay cancellation points; sync and syncfs are none.
 * Before glibc 2.34 it lay in libpthread, under the version asked for here. */
__asm__(".symver pthread_testcancel,pthread_testcancel@GLIBC_2.2.5");
extern void pthread_testcancel(void) __attribute__((weak));

static void cancellation_point(void)
{
	if (pthread_testcancel) {
		pthread_testcancel();
	}
}

static long real(struct refit_counter *c, long nr, long a, long b, long d,
		 long e)
{
	uint64_t began = refit_begin(c);
	long result = prim_syscall(nr, a, b, d, e);
	refit_end(c, began);
	return result;
}

static int probes(void)
{
	return refit.sync_off && !refit.own_seccomp;
}

long refit_fsync(enum refit_call call, long nr, int fd)
{
	struct refit_counter *c = refit_counter(call);
	refit_seen(c);
	if (LIKELY(probes())) {
		long probe = prim_syscall(SYS_sync_file_range, fd, 0, 0, 0);
		if (LIKELY(probe == 0)) {
			refit_suppressed(c);
			return 0;
		}
		if (probe == -EBADF) {
			return -EBADF;
		}
	}
	return real(c, nr, fd, 0, 0, 0);
}

long refit_syncfs(int fd)
{
	struct refit_counter *c = refit_counter(REFIT_CALL_SYNCFS);
	refit_seen(c);
	if (probes()) {
		long probe = prim_syscall(SYS_sync_file_range, fd, 0, 0, 0);
		if (probe == 0 || probe == -ESPIPE) {
			refit_suppressed(c);
			return 0;
		}
		if (probe == -EBADF) {
			return -EBADF;
		}
	}
	return real(c, SYS_syncfs, fd, 0, 0, 0);
}

long refit_sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags)
{
	if (!flags) { /* asks for nothing (sync_file_range(2)) */
		return prim_syscall(SYS_sync_file_range, fd, offset, size, 0);
	}
	struct refit_counter *c = refit_counter(REFIT_CALL_SYNC_FILE_RANGE);
	const unsigned known = SYNC_FILE_RANGE_WAIT_BEFORE |
			       SYNC_FILE_RANGE_WRITE |
			       SYNC_FILE_RANGE_WAIT_AFTER;
	refit_seen(c);
	if (probes() && !(flags & ~known)) {
		long probe = prim_syscall(SYS_sync_file_range, fd, offset, size,
					  0);
		if (probe == 0) {
			refit_suppressed(c);
			return 0;
		}
		if (probe == -EBADF || probe == -ESPIPE || probe == -EINVAL) {
			return probe;
		}
	}
	return real(c, SYS_sync_file_range, fd, offset, size, flags);
}

long refit_msync(void *address, size_t size, int flags)
{
	if (!(flags & MS_SYNC)) {
		return prim_syscall(SYS_msync, address, size, flags, 0);
	}
	struct refit_counter *c = refit_counter(REFIT_CALL_MSYNC);
	refit_seen(c);
	if (probes() && !(flags & MS_ASYNC)) {
		long probe = prim_syscall(SYS_msync, address, size,
					  (flags & ~MS_SYNC) | MS_ASYNC, 0);
		if (probe == 0) {
			refit_suppressed(c);
			return 0;
		}
		if (probe == -EINVAL || probe == -ENOMEM || probe == -EBUSY) {
			return probe;
		}
	}
	return real(c, SYS_msync, (long)address, (long)size, flags, 0);
}

void refit_sync(void)
{
	struct refit_counter *c = refit_counter(REFIT_CALL_SYNC);
	refit_seen(c);
	if (refit.sync_off) {
		refit_suppressed(c);
		return;
	}
	real(c, SYS_sync, 0, 0, 0, 0);
}

EXPORT int fsync(int fd)
{
	cancellation_point();
	return (int)prim_result(refit_fsync(REFIT_CALL_FSYNC, SYS_fsync, fd));
}

EXPORT int fdatasync(int fd)
{
	cancellation_point();
	return (int)prim_result(
		refit_fsync(REFIT_CALL_FDATASYNC, SYS_fdatasync, fd));
}

EXPORT void sync(void)
{
	refit_sync();
}

EXPORT int syncfs(int fd)
{
	return (int)prim_result(refit_syncfs(fd));
}

EXPORT int sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags)
{
	cancellation_point();
	return (int)prim_result(refit_sync_file_range(fd, offset, size, flags));
}

EXPORT int msync(void *address, size_t size, int flags)
{
	cancellation_point();
	return (int)prim_result(refit_msync(address, size, flags));
}
