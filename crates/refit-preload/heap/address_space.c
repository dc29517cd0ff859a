#include "address_space.h"

#include <sys/resource.h>

#include "own_counters.h"

static uint64_t limit_of(int resource)
{
	/* Set although the kernel fills it: GCC 14's analyzer does not see that. */
	struct rlimit limit = {0, 0};
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
