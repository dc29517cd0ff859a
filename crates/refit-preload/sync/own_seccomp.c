#include "own_seccomp.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "filter.h"
#include "next.h"
#include "privileges.h"
#include "state.h"

/* Before the filter is there, so that no thread probes beneath it. */
static void begin(void)
{
	__atomic_fetch_add(&refit.own_seccomp, 1, __ATOMIC_RELAXED);
}

/* Libraries also call with a bad address, only to see what the kernel has. */
static void end(int failed)
{
	if (failed) {
		__atomic_fetch_sub(&refit.own_seccomp, 1, __ATOMIC_RELAXED);
	} else {
		refit_flag(REFIT_IMAGE_OWN_SECCOMP);
	}
}

long refit_seccomp(long nr, long a, long b, long c, long d, long e)
{
	int installs = nr == SYS_prctl ? a == PR_SET_SECCOMP
				       : a == SECCOMP_SET_MODE_STRICT ||
						 a == SECCOMP_SET_MODE_FILTER;
	if (!installs) {
		if (nr == SYS_prctl) {
			refit_before_prctl(a, (unsigned long)b);
		}
		return prim_syscall6(nr, a, b, c, d, e, 0);
	}
	begin();
	long result = prim_syscall6(nr, a, b, c, d, e, 0);
	end(result < 0);
	return result;
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
	if (!refit_next.prctl) {
		return (int)prim_result(refit_seccomp(SYS_prctl, option,
						      (long)a[0], (long)a[1],
						      (long)a[2], (long)a[3]));
	}
	if (option != PR_SET_SECCOMP) {
		refit_before_prctl(option, a[0]);
		return refit_next.prctl(option, a[0], a[1], a[2], a[3]);
	}
	begin();
	int result = refit_next.prctl(option, a[0], a[1], a[2], a[3]);
	end(result < 0);
	return result;
}

/* ---- what was inherited -------------------------------------------------- */

/* The number after "\nSeccomp_filters:\t" (Linux 5.9), or -1. The groups that
 * come before it may fill pages. */
static long filters_in(int fd)
{
	static const char name[] = "\nSeccomp_filters:\t";
	char part[1024];
	size_t matched = 0;
	long number = -1;
	for (;;) {
		long size = read(fd, part, sizeof part);
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

/* Opened by the C library, as glibc's ld.so has another call for it than
 * musl's. */
static int open_to_read(const char *path)
{
	return refit_next.open ? refit_next.open(path, O_RDONLY | O_CLOEXEC |
							       O_NONBLOCK)
			       : -1;
}

int refit_inherits_seccomp(const char *session)
{
	int was = errno;
	long beneath = -1;
	int fd = open_to_read("/proc/self/status");
	if (fd >= 0) {
		beneath = filters_in(fd);
		close(fd);
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
			if (read(fd, head, sizeof head) == sizeof head) {
				const char *at = head + offsetof(struct refit_policy,
								 seccomp_filters);
				counted = *(const uint32_t *)(const void *)at;
			}
			close(fd);
		}
		/* What another image has put beneath this one is ours too. */
		more = (uint64_t)beneath > counted &&
		       (uint64_t)beneath > (uint64_t)counted + (uint64_t)refit_has_filter();
	}
	errno = was;
	return more;
}
