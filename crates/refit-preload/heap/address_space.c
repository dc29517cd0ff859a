#include "address_space.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "counters.h"
#include "heap.h"
#include "own_memory.h"
#include "own_seccomp_of_sync.h"
#include "samples.h"

static uint64_t limit_of(int resource)
{
	struct rlimit limit;
	return prim_syscall(SYS_prlimit64, 0, resource, NULL, &limit) == 0
		       ? limit.rlim_cur
		       : RLIM_INFINITY;
}

uint64_t refit_address_space(void)
{
	uint64_t all = limit_of(RLIMIT_AS), data = limit_of(RLIMIT_DATA);
	return all < data ? all : data;
}

size_t refit_processes_size(size_t processes)
{
	return offsetof(struct refit_heap_file, processes) +
	       processes * sizeof(struct refit_heap_block);
}

size_t refit_places_size(size_t places)
{
	size_t size = offsetof(struct refit_heap_samples, sample) +
		      places * sizeof(struct refit_heap_sample);
	return (size + REFIT_HEAP_PAGE - 1) & ~(size_t)(REFIT_HEAP_PAGE - 1);
}

/* The private counters are in a region of 256 KiB; of the rest each has a half. */
struct refit_heap_room refit_heap_room(uint64_t limit)
{
	uint64_t half = (limit / REFIT_SHARE_OF_LIMIT - (256 << 10)) / 2;
	uint64_t processes = half / sizeof(struct refit_heap_block);
	uint64_t places =
		(half - offsetof(struct refit_heap_samples, sample)) /
		sizeof(struct refit_heap_sample);
	return (struct refit_heap_room){
		processes < REFIT_HEAP_PROCESSES ? processes
						 : REFIT_HEAP_PROCESSES,
		places < REFIT_HEAP_SAMPLES ? places : REFIT_HEAP_SAMPLES,
	};
}

/* The directory of the tasks has a link for each of them, and two of its own
 * (fs/proc/base.c, proc_task_getattr). */
int refit_is_alone(void)
{
	struct stat tasks;
	return !refit_has_own_seccomp() && refit_heap_is_own() &&
	       prim_syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &tasks,
			    0) == 0 &&
	       tasks.st_nlink == 3;
}

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
	refit_heap.mark->distance = 0;
	if (refit_heap.samples) {
		prim_syscall(SYS_munmap, refit_heap.samples,
			     refit_places_size(refit_heap.places), 0, 0);
	}
	prim_syscall(SYS_munmap, file,
		     refit_processes_size(refit_heap.processes), 0, 0);
	refit_own_memory_end();
	return 1;
}
