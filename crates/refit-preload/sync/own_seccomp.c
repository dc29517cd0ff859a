#include "own_seccomp.h"

#include <fcntl.h>
#include <unistd.h>

#include "next.h"

void refit_begin_own_seccomp(void)
{
	__atomic_fetch_add(&refit.own_seccomp, 1, __ATOMIC_RELAXED);
}

void refit_end_own_seccomp(int failed)
{
	if (failed) {
		__atomic_fetch_sub(&refit.own_seccomp, 1, __ATOMIC_RELAXED);
	} else {
		refit_flag(REFIT_IMAGE_OWN_SECCOMP);
	}
}

/* ---- what was inherited -------------------------------------------------- */

/* The number after "\nSeccomp_filters:\t" (Linux 5.9), or -1. The groups that
 * come before it may fill pages. */
static long filters_in(long fd)
{
	static const char name[] = "\nSeccomp_filters:\t";
	char part[1024];
	size_t matched = 0;
	long number = -1;
	for (;;) {
		long size = prim_syscall(SYS_read, fd, part, sizeof part, 0);
		if (size <= 0) {
			return number;
		}
		for (long i = 0; i < size; i++) {
			if (name[matched]) {
				matched = part[i] == name[matched] ? matched + 1
					  : part[i] == '\n';
			} else if (part[i] < '0' || part[i] > '9') {
				return number;
			} else {
				number = (number < 0 ? 0 : number * 10) +
					 (part[i] - '0');
			}
		}
	}
}

#define STATUS "/proc/self/status"

/* Opened by the C library, as glibc's ld.so has another call for it than
 * musl's. */
static int open_to_read(const char *path)
{
	return refit_next.open ? refit_next.open(path, O_RDONLY | O_CLOEXEC |
							       O_NONBLOCK)
			       : -1;
}

int refit_has_filter(void)
{
	/* Fails with EINVAL where no filter answers it: nothing is mapped. */
	return prim_syscall6(SYS_mmap, 0, 0, 0, 0, -1, (long)REFIT_COOKIE) ==
	       -REFIT_FILTER_IS_THERE;
}

/* What another image has put beneath this one is ours too. */
static int are_more(long beneath, uint32_t counted)
{
	return beneath > (long)counted &&
	       beneath > (long)counted + refit_has_filter();
}

int refit_inherits_seccomp(const char *session)
{
	int was = errno;
	long beneath = -1;
	int fd = open_to_read(STATUS);
	if (fd >= 0) {
		beneath = filters_in(fd);
		prim_syscall(SYS_close, fd, 0, 0, 0);
	}
	int more = 0;
	if (beneath > 0) {
		char path[512];
		char head[offsetof(struct refit_policy, root_dev)];
		uint32_t counted = 0;
		char *end_of_path = prim_copy(path, session, sizeof path - 8);
		prim_copy(end_of_path, "/policy", 8);
		fd = open_to_read(path);
		if (fd >= 0) {
			if (prim_syscall(SYS_read, fd, head, sizeof head, 0) ==
			    sizeof head) {
				const char *at = head + offsetof(struct refit_policy,
								 seccomp_filters);
				counted = *(const uint32_t *)(const void *)at;
			}
			prim_syscall(SYS_close, fd, 0, 0, 0);
		}
		more = are_more(beneath, counted);
	}
	errno = was;
	return more;
}

int refit_probes_are_false(void)
{
	return (refit.decision == REFIT_DECISION_OFF || refit.by_path) &&
	       prim_syscall(SYS_sync_file_range, -1, 0, 0, 0) != -EBADF;
}

/* ---- looked for later ---------------------------------------------------- */

/* By plain system calls: the C library's own are points at which a thread can be
 * cancelled, and what is intercepted may be none. */
int refit_look_for_own_seccomp(void)
{
	int known = __atomic_load_n(&refit.own_seccomp, __ATOMIC_RELAXED);
	if (known != REFIT_SECCOMP_UNKNOWN) {
		return known != 0;
	}
	long fd = prim_syscall(SYS_openat, AT_FDCWD, STATUS,
			       O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	if (fd < 0) {
		/* No descriptor is free, or /proc is gone: the real call now, and
		 * another look at the next. */
		return 1;
	}
	long beneath = filters_in(fd);
	prim_syscall(SYS_close, fd, 0, 0, 0);
	if (are_more(beneath, refit.policy->seccomp_filters) ||
	    refit_probes_are_false()) {
		refit_begin_own_seccomp();
	}
	known = __atomic_and_fetch(&refit.own_seccomp, ~REFIT_SECCOMP_UNKNOWN,
				   __ATOMIC_RELAXED);
	return known != 0;
}

/* Each child would look for itself. */
static void before_fork(void)
{
	refit_beneath_own_seccomp();
}

extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void),
			     void *) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

extern const char *gnu_get_libc_version(void) __attribute__((weak));

unsigned refit_glibc(void)
{
	const char *version =
		gnu_get_libc_version ? gnu_get_libc_version() : "";
	const char *minor = prim_after(version, "2.");
	unsigned n = 0;
	while (minor && *minor >= '0' && *minor <= '9') {
		n = 10 * n + (unsigned)(*minor++ - '0');
	}
	return n;
}

/* Its open(2) is openat(2) since glibc 2.26. */
int refit_may_look_later(void)
{
	return refit_glibc() >= 26 && __register_atfork;
}

void refit_look_later(void)
{
	refit.own_seccomp = REFIT_SECCOMP_UNKNOWN;
	__register_atfork(before_fork, NULL, NULL, __dso_handle);
}

/* In another root there may be no /proc. */
EXPORT int chroot(const char *path)
{
	refit_beneath_own_seccomp();
	return NEXT(chroot) ? refit_next.chroot(path)
			    : (int)prim_result(prim_syscall(SYS_chroot, path, 0,
							    0, 0));
}
