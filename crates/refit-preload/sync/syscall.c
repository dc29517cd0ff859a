/* syscall(2) by number. stubs.S jumps straight to the C library for numbers
 * that are not ours; the others come here. */
#include "aio.h"
#include "exec.h"
#include "io_uring.h"
#include "own_ring.h"
#include "ring_memory.h"
#include "own_seccomp.h"
#include "prctl.h"
#include "privileges.h"
#include "sync.h"

long refit_syscall(long nr, long a, long b, long c, long d, long e, long f)
	__attribute__((visibility("hidden")));

static long openat_by(int dirfd, long path, int flags, long mode)
{
	int use = refit_open_flags(flags);
	long fd = prim_syscall(SYS_openat, dirfd, path, use, mode);
	if (refit_opens_as_asked((int)fd, flags)) {
		fd = prim_syscall(SYS_openat, dirfd, path, flags, mode);
	}
	return refit_opened((int)fd, flags);
}

#ifdef SYS_open /* not where openat came first */
static long open_by(long path, int flags, long mode)
{
	int use = refit_open_flags(flags);
	long fd = prim_syscall(SYS_open, path, use, mode, 0);
	if (refit_opens_as_asked((int)fd, flags)) {
		fd = prim_syscall(SYS_open, path, flags, mode, 0);
	}
	return refit_opened((int)fd, flags);
}
#endif

static long dispatch(long nr, long a, long b, long c, long d, long e, long f)
{
	switch (nr) {
	case SYS_fsync:
		return refit_fsync(REFIT_CALL_FSYNC, nr, (int)a);
	case SYS_fdatasync:
		return refit_fsync(REFIT_CALL_FDATASYNC, nr, (int)a);
	case SYS_sync:
		refit_sync(REFIT_BY_NUMBER);
		return 0;
	case SYS_syncfs:
		return refit_syncfs((int)a, REFIT_BY_NUMBER);
	case SYS_sync_file_range:
		return refit_sync_file_range((int)a, b, c, (unsigned)d,
					     REFIT_BY_NUMBER);
	case SYS_msync:
		return refit_msync((void *)a, (size_t)b, (int)c,
				   REFIT_BY_NUMBER);
#ifdef SYS_open
	case SYS_open:
		return open_by(a, (int)b, c);
#endif
	case SYS_openat:
		return openat_by((int)a, b, (int)c, d);
	case SYS_openat2:
		return refit_openat2((int)a, (const char *)b, (const void *)c,
				     (size_t)d);
	case SYS_pwritev2:
		return prim_syscall6(nr, a, b, c, d, e,
				     refit_pwritev2_flags((int)a, (int)f));
	case SYS_io_uring_setup:
		return refit_io_uring_setup(a, (void *)b);
	case SYS_io_uring_enter:
		return refit_io_uring_enter(a, b, c, d, e, f);
	case SYS_munmap:
	case SYS_mremap:
		refit_forget_mapping((const void *)a, (size_t)b);
		return prim_syscall6(nr, a, b, c, d, e, f);
	case SYS_io_submit:
		return refit_io_submit((void *)a, b, (struct iocb **)c);
	case SYS_seccomp:
	case SYS_prctl:
		return refit_seccomp(nr, a, b, c, d, e);
	case SYS_chroot:
	case SYS_pivot_root:
		refit_beneath_own_seccomp();
		return prim_syscall6(nr, a, b, c, d, e, f);
	case SYS_execve:
		return refit_execve((const char *)a, (char *const *)b,
				    (char *const *)c);
	case SYS_execveat:
		return refit_execveat((int)a, (const char *)b,
				      (char *const *)c, (char *const *)d,
				      (int)e);
	case SYS_setuid:
	case SYS_setreuid:
	case SYS_setresuid:
	case SYS_capset:
		refit_before_by_number(nr, a, b);
		return prim_syscall6(nr, a, b, c, d, e, f);
	default:
		return prim_syscall6(nr, a, b, c, d, e, f);
	}
}

long refit_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	return prim_result(dispatch(nr, a, b, c, d, e, f));
}
