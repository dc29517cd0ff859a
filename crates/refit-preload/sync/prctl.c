#include "prctl.h"

#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>

#include "next.h"
#include "own_seccomp.h"
#include "privileges.h"

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
	refit_begin_own_seccomp();
	long result = prim_syscall6(nr, a, b, c, d, e, 0);
	refit_end_own_seccomp(result < 0);
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
	refit_begin_own_seccomp();
	int result = refit_next.prctl(option, a[0], a[1], a[2], a[3]);
	refit_end_own_seccomp(result < 0);
	return result;
}
