#include "heap.h"

#include "address_space.h"
#include "beneath.h"
#include "counters.h"
#include "own_memory.h"
#include "own_seccomp_of_sync.h"
#include "small.h"

int refit_heap_state;

/* How the image is counted as it starts. */
static int state_at_start(void)
{
	uint64_t limit = refit_address_space();
	int state = REFIT_HEAP_COUNTING;
	if (limit != UINT64_MAX) {
		/* Without the table only malloc_usable_size tells anything. */
		if (limit < REFIT_LEAST_LIMIT || refit_beneath.hides_usable) {
			return REFIT_HEAP_OFF;
		}
		refit_own_memory_spare();
		state = REFIT_HEAP_TABLELESS;
	}
	if (refit_has_own_seccomp() || !refit_heap_map_counters()) {
		return REFIT_HEAP_OFF;
	}
	if (state == REFIT_HEAP_COUNTING) {
		/* Without it all is counted by classes. */
		refit_small_map();
	}
	return state;
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
	__atomic_store_n(&refit_heap_state, state_at_start(), __ATOMIC_RELEASE);
}

int refit_heap_is_found(void)
{
	if (__atomic_load_n(&refit_heap_state, __ATOMIC_ACQUIRE) ==
	    REFIT_HEAP_NEW) {
		refit_heap_begin();
	}
	return __atomic_load_n(&refit_heap_state, __ATOMIC_ACQUIRE) >=
	       REFIT_HEAP_OFF;
}
