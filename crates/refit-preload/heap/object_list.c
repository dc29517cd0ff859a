#include "object_list.h"

#include <fcntl.h>

#include "call_stack.h"
#include "file_pages.h"
#include "own_counters.h"

void refit_list_objects(void)
{
	struct refit_heap_samples *samples = refit_heap.samples;
	uint64_t nobody = 0;
	if (!__atomic_compare_exchange_n(&samples->is_listing, &nobody, 1, 0,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		return;
	}
	long fd = -1;
	if (refit_heap_allocate(samples->objects, sizeof samples->objects)) {
		fd = prim_syscall(SYS_openat, AT_FDCWD, "/proc/self/maps",
				  O_RDONLY | O_CLOEXEC, 0);
	}
	if (fd >= 0) {
		samples->objects_bytes = refit_copy_code_lines(
			fd, samples->objects, sizeof samples->objects);
		prim_syscall(SYS_close, fd, 0, 0, 0);
	}
	__atomic_store_n(&samples->is_listing, 0, __ATOMIC_RELEASE);
}
