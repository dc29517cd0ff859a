/* Calls that are seen and left alone: the C library's asynchronous syncs have to
 * complete through aio_error and aio_return and deliver their signal. They are
 * counted, and named as not covered. Then the calls that tell us to step
 * back. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <sys/prctl.h>

#include "sync.h"

/* glibc's internal operations behind aio_fsync; a caller who puts them into a
 * list gets a sync too (glibc sysdeps/pthread/aio_misc.h). */
enum { LIO_DSYNC_OPERATION = 3, LIO_SYNC_OPERATION = 4 };

struct aio_head {
	int descriptor;
	int operation;
};

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
		refit_seen_and_real(REFIT_CALL_AIO_FSYNC);                           \
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
				refit_seen_and_real(REFIT_CALL_LIO_LISTIO);          \
			}                                                      \
		}                                                              \
		return next(mode, list, count, event);                         \
	}

DEFINE_LIO_LISTIO(lio_listio)
DEFINE_LIO_LISTIO(lio_listio64)

/* From now on a probe that the program's filter does not know could kill it. */
void refit_seccomp_set(void)
{
	refit.own_seccomp = 1;
	refit.trace = 0;
	refit_flag(REFIT_IMAGE_OWN_SECCOMP);
}

EXPORT int prctl(int option, ...)
{
	unsigned long a[4];
	va_list args;
	va_start(args, option);
	for (int i = 0; i < 4; i++) {
		a[i] = va_arg(args, unsigned long);
	}
	va_end(args);
	if (option == PR_SET_SECCOMP) {
		refit_seccomp_set();
	}
	return refit.next.prctl
		       ? refit.next.prctl(option, a[0], a[1], a[2], a[3])
		       : (int)prim_result(prim_syscall6(
				 SYS_prctl, option, (long)a[0], (long)a[1],
				 (long)a[2], (long)a[3], 0));
}
