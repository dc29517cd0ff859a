#include "filter.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "own_seccomp.h"

/* seccomp(2): 0, or the number of a thread that cannot have it, or -errno. */
static long install(unsigned flags)
{
	const struct refit_policy *policy = refit.policy;
	struct sock_fprog program = {
		.len = (unsigned short)policy->filter_length,
		.filter = (struct sock_filter *)(uintptr_t)policy->filter,
	};
	/* Without SPEC_ALLOW kernels before 5.16 slow the program down. */
	return prim_syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_SPEC_ALLOW | flags, &program,
			    0);
}

int refit_wants_filter(void)
{
	return refit.policy && !refit_beneath_own_seccomp() &&
	       refit.policy->filter_length > 0 &&
	       refit.policy->filter_length <= REFIT_FILTER;
}

int refit_put_filter(void)
{
	return refit_wants_filter() && (refit_has_filter() || install(0) == 0);
}

void refit_put_filter_while_allowed(void)
{
	/* no_new_privs gives the right for good. */
	if (!refit_wants_filter() || refit_has_filter() ||
	    prim_syscall6(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0) == 1) {
		return;
	}
	/* Threads with other filters cannot be given ours. */
	long result = install(SECCOMP_FILTER_FLAG_TSYNC);
	if (result > 0) {
		result = install(0);
	}
	if (result == 0) {
		refit.filtered = 1;
		refit_flag(REFIT_IMAGE_FILTERED);
	}
}
