/* The fsync family. A suppressed call returns what the kernel would have
 * returned, found by a probe that does no I/O:
 *
 *   descriptors  sync_file_range(fd, 0, 0, 0): EBADF for what is closed or
 *                O_PATH, ESPIPE for what is not a file, else 0
 *   mappings     msync with MS_ASYNC, which validates and does nothing; it does
 *                not tell that a mapping has nothing to sync, as an io_uring's,
 *                which is known, or a device's, which is not
 *
 * Only 0, EBADF and ESPIPE count as an answer; a sandbox's EPERM or ENOSYS
 * leads to the real call.
 */
#include "sync.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "call_record.h"
#include "decision.h"
#include "disk.h"
#include "others.h"
#include "ring_memory.h"
#include "slot.h"

/* Cancellation points stay cancellation points; sync and syncfs are none.
 * Before glibc 2.34 the function was in libpthread, under this version. */
PRIM_OLDEST(pthread_testcancel);
extern void pthread_testcancel(void) __attribute__((weak));

static void cancellation_point(void)
{
	if (pthread_testcancel) {
		pthread_testcancel();
	}
}

/* glibc's sync_file_range is a cancellation point, musl's is not; musl does not
 * have this function. */
PRIM_OLDEST(gnu_get_libc_version);
extern const char *gnu_get_libc_version(void) __attribute__((weak));

/* A call that asks for durability. */
struct flush {
	enum refit_call call;
	long nr;
	long a[4];
	int fd;        /* -1: none */
	int on_device; /* the emulated disk delays and refuses it */
	enum refit_way way;
};

/* Whether the program would call another object's definition, and what that returns:
 * as a kernel's result. */
static __attribute__((noinline, cold)) int in_other(const struct flush *f,
						    long *result)
{
	const struct refit_others *other = &refit_others;
	int returned = 0;
	if (f->way == REFIT_BY_NUMBER) {
		return 0;
	}
	if (f->call == REFIT_CALL_FSYNC && other->fsync) {
		returned = other->fsync(f->fd);
	} else if (f->call == REFIT_CALL_FDATASYNC && other->fdatasync) {
		returned = other->fdatasync(f->fd);
	} else if (f->call == REFIT_CALL_SYNC && other->sync) {
		other->sync();
	} else if (f->call == REFIT_CALL_SYNCFS && other->syncfs) {
		returned = other->syncfs(f->fd);
	} else if (f->call == REFIT_CALL_SYNC_FILE_RANGE &&
		   other->sync_file_range) {
		returned = other->sync_file_range(f->fd, f->a[1], f->a[2],
						  (unsigned)f->a[3]);
	} else if (f->call == REFIT_CALL_MSYNC && other->msync) {
		returned = other->msync((void *)f->a[0], (size_t)f->a[1],
					(int)f->a[2]);
	} else {
		return 0;
	}
	/* One that fails and does not say how has failed. */
	*result = returned >= 0 ? returned : -(long)(errno ? errno : EIO);
	return 1;
}

static uint64_t device_of(int fd)
{
	struct stat st;
	return fd >= 0 && prim_syscall(SYS_fstat, fd, &st, 0, 0) == 0
		       ? st.st_dev
		       : refit.policy->root_dev;
}

/* The kernel's timer may be late by the thread's slack, 50 us (prctl(2)): the
 * sleep is that much shorter, and the rest is waited for awake. */
static void wait_until(uint64_t until_ns)
{
	const uint64_t slack_ns = 50000;
	struct timespec t;
	uint64_t early_ns = until_ns - slack_ns;
	t.tv_sec = (time_t)(early_ns / 1000000000u);
	t.tv_nsec = (long)(early_ns % 1000000000u);
	/* fsync(2) is not interrupted by signals: handlers run, and it goes
	 * on. */
	while (prim_clock_ns() < early_ns &&
	       prim_syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME,
			    &t, NULL) == -EINTR) {
	}
	while (prim_clock_ns() < until_ns) {
		arch_pause();
	}
}

/* The emulated disk refuses only what the kernel would flush. */
static long fault(const struct flush *f)
{
	const struct refit_disk *disk = &refit.policy->disk;
	if (disk->kind != REFIT_DISK_FAIL) {
		return 0;
	}
	long probe = f->nr == SYS_msync
			     ? prim_syscall(SYS_msync, f->a[0], f->a[1],
					    MS_ASYNC, 0)
			     : prim_syscall(SYS_sync_file_range, f->fd, 0, 0, 0);
	return probe ? 0 : -(long)refit_disk_fault(disk, refit.flushes);
}

/* Without a policy, as in a user namespace where its owner is nobody, it is not
 * ours to decide: a filter beneath is. */
static long in_kernel(const struct flush *f)
{
	long result;
	if (UNLIKELY(refit_others.bits) && in_other(f, &result)) {
		return result;
	}
	return prim_syscall6(f->nr, f->a[0], f->a[1], f->a[2], f->a[3], 0,
			     refit.policy ? (long)REFIT_COOKIE : 0);
}

/* The call as the kernel does it, on the emulated disk where there is one. */
static long real(struct refit_counter *c, enum refit_decision decision,
		 const struct flush *f)
{
	if (refit_beneath_own_seccomp()) {
		refit_real(c);
		return in_kernel(f);
	}
	if (!c && decision != REFIT_DECISION_DISK && !refit_traces()) {
		return in_kernel(f);
	}
	int emulated = decision == REFIT_DECISION_DISK && f->on_device;
	struct refit_call_record record = {
		.call = f->call,
		.answer = REFIT_ANSWER_REAL,
		.fd = f->fd,
		.result = emulated ? fault(f) : 0,
		.began_ns = prim_clock_ns(),
	};
	if (record.result) {
		record.answer = REFIT_ANSWER_INJECTED;
	} else {
		record.result = in_kernel(f);
		/* Another thread may have installed a filter meanwhile. */
		if (refit_beneath_own_seccomp()) {
			refit_real(c);
			return record.result;
		}
		if (emulated && record.result == 0) {
			wait_until(refit_disk_until(
				&refit.policy->disk, refit.flushes,
				device_of(f->fd), record.began_ns,
				prim_clock_ns()));
		}
	}
	record.ended_ns = prim_clock_ns();
	if (c && record.answer == REFIT_ANSWER_INJECTED) {
		refit_add(&c->injected, 1);
	} else if (c) {
		refit_real(c);
		refit_add(&c->waited_ns, record.ended_ns - record.began_ns);
	}
	refit_record(&record);
	return record.result;
}

static __attribute__((noinline)) void trace_suppressed(enum refit_call call, int fd)
{
	uint64_t now = prim_clock_ns();
	refit_record(&(struct refit_call_record){
		.call = call,
		.answer = REFIT_ANSWER_SUPPRESSED,
		.fd = fd,
		.began_ns = now,
		.ended_ns = now,
	});
}

static inline void suppressed(enum refit_call call, int fd)
{
	refit_suppressed(call);
	if (UNLIKELY(refit_traces())) {
		trace_suppressed(call, fd);
	}
}

/* The filter asks refit, which answers and counts. */
static long ask(const struct flush *f)
{
	long result;
	if (UNLIKELY(refit_others.bits) && in_other(f, &result)) {
		return result;
	}
	return prim_syscall(f->nr, f->a[0], f->a[1], f->a[2], f->a[3]);
}

/* What another object's definition passes on has no cookie: beneath a filter refit is
 * asked about it, and decides and counts. */
static int is_asked(enum refit_decision decision)
{
	return decision == REFIT_DECISION_ASK ||
	       (UNLIKELY(refit_others.bits) && refit_guarded() &&
		decision != REFIT_DECISION_OFF);
}

static __attribute__((noinline)) long
fsync_in_kernel(enum refit_call call, long nr, int fd,
		enum refit_decision decision, enum refit_way way)
{
	const struct flush f = {call, nr, {fd, 0, 0, 0}, fd, 1, way};
	if (is_asked(decision)) {
		return ask(&f);
	}
	struct refit_counter *c = refit_counter(call);
	refit_not_suppressed(c);
	return real(c, decision, &f);
}

/* In line: most of what it takes is a system call of 0.1 us, and a call of this
 * function, which the compiler would rather make, is a tenth of that. */
static inline __attribute__((always_inline)) long
sync_file(enum refit_call call, long nr, int fd, enum refit_way way)
{
	enum refit_decision decision = refit_decide(fd);
	if (LIKELY(decision == REFIT_DECISION_OFF)) {
		long probe = prim_syscall(SYS_sync_file_range, fd, 0, 0, 0);
		if (LIKELY(probe == 0)) {
			suppressed(call, fd);
			return 0;
		}
		/* To another object it may be a file. */
		if (probe == -EBADF && !refit_others.bits) {
			refit_not_suppressed(refit_counter(call));
			return -EBADF;
		}
	}
	return fsync_in_kernel(call, nr, fd, decision, way);
}

long refit_fsync(enum refit_call call, long nr, int fd)
{
	return sync_file(call, nr, fd, REFIT_BY_NUMBER);
}

long refit_syncfs(int fd, enum refit_way way)
{
	const struct flush f = {
		REFIT_CALL_SYNCFS, SYS_syncfs, {fd, 0, 0, 0}, fd, 1, way};
	enum refit_decision decision = refit_decide_for_all();
	if (is_asked(decision)) {
		return ask(&f);
	}
	struct refit_counter *c = refit_counter(f.call);
	if (decision == REFIT_DECISION_OFF) {
		long probe = prim_syscall(SYS_sync_file_range, fd, 0, 0, 0);
		if (probe == 0 || probe == -ESPIPE) {
			suppressed(f.call, fd);
			return 0;
		}
		if (probe == -EBADF && !refit_others.bits) {
			refit_not_suppressed(c);
			return -EBADF;
		}
	}
	refit_not_suppressed(c);
	return real(c, decision, &f);
}

long refit_sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags,
			   enum refit_way way)
{
	/* It writes pages out and flushes no device (sync_file_range(2)). */
	const struct flush f = {REFIT_CALL_SYNC_FILE_RANGE,
				SYS_sync_file_range,
				{fd, offset, size, flags},
				fd,
				0,
				way};
	const unsigned known = SYNC_FILE_RANGE_WAIT_BEFORE |
			       SYNC_FILE_RANGE_WRITE |
			       SYNC_FILE_RANGE_WAIT_AFTER;
	if (!flags) { /* asks for nothing */
		return ask(&f);
	}
	enum refit_decision decision = refit_decide(fd);
	if (is_asked(decision)) {
		return ask(&f);
	}
	struct refit_counter *c = refit_counter(f.call);
	if (decision == REFIT_DECISION_OFF && !(flags & ~known)) {
		long probe = prim_syscall(SYS_sync_file_range, fd, offset, size,
					  0);
		if (probe == 0) {
			suppressed(f.call, fd);
			return 0;
		}
		if (!refit_others.bits &&
		    (probe == -EBADF || probe == -ESPIPE || probe == -EINVAL)) {
			refit_not_suppressed(c);
			return probe;
		}
	}
	refit_not_suppressed(c);
	return real(c, decision, &f);
}

long refit_msync(void *address, size_t size, int flags, enum refit_way way)
{
	const struct flush f = {REFIT_CALL_MSYNC,
				SYS_msync,
				{(long)address, (long)size, flags, 0},
				-1,
				1,
				way};
	if (!(flags & MS_SYNC)) {
		return ask(&f);
	}
	enum refit_decision decision = refit_decide_for_all();
	if (is_asked(decision)) {
		return ask(&f);
	}
	struct refit_counter *c = refit_counter(f.call);
	if (decision == REFIT_DECISION_OFF && !(flags & MS_ASYNC) &&
	    !refit_ring_lies_in((const void *)address, size)) {
		long probe = prim_syscall(SYS_msync, address, size,
					  (flags & ~MS_SYNC) | MS_ASYNC, 0);
		if (probe == 0) {
			suppressed(f.call, -1);
			return 0;
		}
		if (!refit_others.bits && (probe == -EINVAL || probe == -ENOMEM ||
					   probe == -EBUSY)) {
			refit_not_suppressed(c);
			return probe;
		}
	}
	refit_not_suppressed(c);
	return real(c, decision, &f);
}

void refit_sync(enum refit_way way)
{
	const struct flush f = {
		REFIT_CALL_SYNC, SYS_sync, {0, 0, 0, 0}, -1, 1, way};
	enum refit_decision decision = refit_decide_for_all();
	if (is_asked(decision)) {
		ask(&f);
		return;
	}
	if (decision == REFIT_DECISION_OFF) {
		suppressed(f.call, -1);
		return;
	}
	struct refit_counter *c = refit_counter(f.call);
	refit_not_suppressed(c);
	real(c, decision, &f);
}

int refit_range_is_off(int fd, off64_t offset, off64_t size)
{
	return refit_decide(fd) == REFIT_DECISION_OFF &&
	       prim_syscall(SYS_sync_file_range, fd, offset, size, 0) == 0;
}

int refit_sync_is_off(int fd)
{
	return refit_range_is_off(fd, 0, 0);
}

int refit_counted(enum refit_call call, int is_suppressed)
{
	if (is_suppressed) {
		refit_suppressed(call);
	} else {
		refit_seen_and_real(call);
	}
	return is_suppressed;
}

EXPORT int fsync(int fd)
{
	cancellation_point();
	return (int)prim_result(sync_file(REFIT_CALL_FSYNC, SYS_fsync, fd,
					  REFIT_BY_NAME));
}

EXPORT int fdatasync(int fd)
{
	cancellation_point();
	return (int)prim_result(
		sync_file(REFIT_CALL_FDATASYNC, SYS_fdatasync, fd,
			  REFIT_BY_NAME));
}

EXPORT void sync(void)
{
	refit_sync(REFIT_BY_NAME);
}

EXPORT int syncfs(int fd)
{
	return (int)prim_result(refit_syncfs(fd, REFIT_BY_NAME));
}

EXPORT int sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags)
{
	if (gnu_get_libc_version) {
		cancellation_point();
	}
	return (int)prim_result(
		refit_sync_file_range(fd, offset, size, flags, REFIT_BY_NAME));
}

EXPORT int msync(void *address, size_t size, int flags)
{
	cancellation_point();
	return (int)prim_result(
		refit_msync(address, size, flags, REFIT_BY_NAME));
}
