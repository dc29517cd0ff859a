#include "heap.h"

#include <sys/resource.h>

#include "beneath.h"
#include "counters.h"
#include "own_seccomp_of_sync.h"

int refit_heap_state;

static int is_finite(int resource)
{
	struct rlimit limit;
	return prim_syscall(SYS_prlimit64, 0, resource, NULL, &limit) == 0 &&
	       limit.rlim_cur != RLIM_INFINITY;
}

int refit_heap_is_limited(void)
{
	return is_finite(RLIMIT_AS) || is_finite(RLIMIT_DATA);
}

void refit_heap_begin(void)
{
	int state = REFIT_HEAP_NEW;
	if (!__atomic_compare_exchange_n(&refit_heap_state, &state,
					 REFIT_HEAP_FINDING, 0,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		return;
	}
	refit_find_beneath();
	state = !refit_has_own_seccomp() && !refit_heap_is_limited() &&
				refit_heap_map_counters()
			? REFIT_HEAP_COUNTING
			: REFIT_HEAP_OFF;
	__atomic_store_n(&refit_heap_state, state, __ATOMIC_RELEASE);
}
