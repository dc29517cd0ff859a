/* Calls that are seen and left alone: asynchronous syncs have to complete
 * through aio_error and aio_return and deliver their signal, and what runs
 * inside an io_uring cannot be seen from here. They are counted, and named as
 * not covered. Then the calls that tell us to step back. */
#define _GNU_SOURCE
#include <linux/io_uring.h>
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

static void seen_and_real(enum refit_call call)
{
	struct refit_counter *c = refit_counter(call);
	if (c) {
		refit_add(&c->seen, 1);
		refit_add(&c->real, 1);
	}
}

/* Not every program has these libraries from its start. */
#define NEXT_FOR_CALLER(found, name)                                           \
	__typeof__(refit.next.name) found = NEXT(name);                        \
	if (UNLIKELY(!found)) {                                                \
		*(void **)&found = refit_find_in_scope_of(                     \
			__builtin_return_address(0), #name);                   \
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
		seen_and_real(REFIT_CALL_AIO_FSYNC);                           \
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
				seen_and_real(REFIT_CALL_LIO_LISTIO);          \
			}                                                      \
		}                                                              \
		return next(mode, list, count, event);                         \
	}

DEFINE_LIO_LISTIO(lio_listio)
DEFINE_LIO_LISTIO(lio_listio64)

void refit_ring_set_up(unsigned setup_flags)
{
	if (setup_flags & IORING_SETUP_IOPOLL) {
		refit.iopoll = 1;
	}
	seen_and_real(REFIT_CALL_IO_URING_SETUP);
}

/* liburing makes its system calls inline, so its own entries are the door. */
static int set_up(int (*next)(unsigned, void *, void *), unsigned entries,
		  void *ring, struct io_uring_params *p)
{
	if (!next) {
		return -ENOSYS;
	}
	unsigned flags = p->flags;
	int result = next(entries, ring, p);
	if (result >= 0) {
		refit_ring_set_up(flags);
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
	if (!next) {
		return -ENOSYS;
	}
	unsigned flags = p->flags;
	int result = next(entries, ring, p, buffer, size);
	if (result >= 0) {
		refit_ring_set_up(flags);
	}
	return result;
}

/* From now on a probe that the program's filter does not know could kill it. */
void refit_seccomp_set(void)
{
	refit.own_seccomp = 1;
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
