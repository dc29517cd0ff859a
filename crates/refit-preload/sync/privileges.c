/* Functions by which a process gives up CAP_SYS_ADMIN, and with it the right to
 * put a filter beneath what it starts later. Before that it gets the filter
 * itself: what it starts may be out of the preload's reach, and nobody knows.
 *
 * A user id of 0 keeps the capability (capabilities(7)).
 */
#include "privileges.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "filter.h"
#include "next.h"

#define UNCHANGED ((uid_t)-1)

static void about_to_become(uid_t effective)
{
	if (effective != 0 && effective != UNCHANGED) {
		refit_put_filter_while_allowed();
	}
}

void refit_before_prctl(long option, unsigned long argument)
{
	if ((option == PR_CAPBSET_DROP && argument == CAP_SYS_ADMIN) ||
	    (option == PR_SET_SECUREBITS && argument & SECBIT_NOROOT)) {
		refit_put_filter_while_allowed();
	}
}

/* Copied by the kernel, as the address may be bad; where it does not do that,
 * the capability may be among what is lost. */
static void about_to_keep(const void *data)
{
	if (!refit_wants_filter()) {
		return;
	}
	struct __user_cap_data_struct kept = {0};
	struct iovec to = {&kept, sizeof kept};
	struct iovec from = {(void *)(uintptr_t)data, sizeof kept};
	long pid = prim_syscall(SYS_getpid, 0, 0, 0, 0);
	prim_syscall6(SYS_process_vm_readv, pid, (long)&to, 1, (long)&from, 1,
		      0);
	if (data && !(kept.effective >> CAP_SYS_ADMIN & 1)) {
		refit_put_filter_while_allowed();
	}
}

void refit_before_by_number(long nr, long a, long b)
{
	if (nr == SYS_setuid) {
		about_to_become((uid_t)a);
	} else if (nr == SYS_setreuid || nr == SYS_setresuid) {
		about_to_become((uid_t)b);
	} else {
		about_to_keep((const void *)b);
	}
}

/* Of a C library without such a function the kernel's own does as well, for the
 * calling thread alone. */
EXPORT int setuid(uid_t id)
{
	about_to_become(id);
	return NEXT(setuid) ? refit_next.setuid(id)
			    : (int)prim_result(prim_syscall(SYS_setuid, id, 0,
							    0, 0));
}

EXPORT int seteuid(uid_t id)
{
	about_to_become(id);
	return NEXT(seteuid)
		       ? refit_next.seteuid(id)
		       : (int)prim_result(prim_syscall(SYS_setresuid, UNCHANGED,
						       id, UNCHANGED, 0));
}

EXPORT int setreuid(uid_t real, uid_t effective)
{
	about_to_become(effective);
	return NEXT(setreuid)
		       ? refit_next.setreuid(real, effective)
		       : (int)prim_result(prim_syscall(SYS_setreuid, real,
						       effective, 0, 0));
}

EXPORT int setresuid(uid_t real, uid_t effective, uid_t saved)
{
	about_to_become(effective);
	return NEXT(setresuid)
		       ? refit_next.setresuid(real, effective, saved)
		       : (int)prim_result(prim_syscall(SYS_setresuid, real,
						       effective, saved, 0));
}

EXPORT int capset(void *header, const void *data)
{
	about_to_keep(data);
	return NEXT(capset) ? refit_next.capset(header, data)
			    : (int)prim_result(prim_syscall(SYS_capset, header,
							    data, 0, 0));
}
