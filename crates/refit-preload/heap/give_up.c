#include "give_up.h"

#include "address_space.h"
#include "heap.h"
#include "own_counters.h"
#include "own_memory.h"
#include "samples.h"

int refit_heap_give_up(size_t size)
{
	struct refit_heap_file *file = refit_heap.file;
	uint64_t limit = refit_address_space();
	if (!file || limit == UINT64_MAX || size >= limit || !refit_is_alone()) {
		return 0;
	}
	__atomic_store_n(&refit_heap_state, REFIT_HEAP_OFF, __ATOMIC_RELEASE);
	__atomic_fetch_or(&file->header.flags, REFIT_HEAP_GAVE_UP,
			  __ATOMIC_RELAXED);
	refit_samples_end();
	refit_heap.file = NULL;
	refit_heap.own = NULL;
	refit_heap_mine = NULL;
	refit_heap_quick = NULL;
	refit_heap.mark->distance = 0;
	if (refit_heap.samples) {
		prim_syscall(SYS_munmap, refit_heap.samples,
			     refit_places_size(refit_heap.places), 0, 0);
	}
	prim_syscall(SYS_munmap, file,
		     refit_processes_size(refit_heap.processes), 0, 0);
	if (refit_heap.small_in_file) {
		prim_syscall(SYS_munmap, refit_heap.small_in_file,
			     REFIT_SMALL_IN_FILE, 0, 0);
	}
	refit_own_memory_end();
	return 1;
}
