#include "object_list.h"

#include <fcntl.h>

#include "file_pages.h"
#include "own_counters.h"

/* Keeps the lines of executable mappings. Each line is appended to those that are kept, and the next
 * one overwrites it if it is not executable: no memory is allocated, and little stack is used. */
static uint64_t copy_lines(long fd, char *to, uint64_t size)
{
	char chunk[1024];
	uint64_t kept = 0, at = 0;
	long got;
	while ((got = prim_syscall(SYS_read, fd, chunk, sizeof chunk, 0)) > 0) {
		for (long i = 0; i < got; i++) {
			if (at == size) {
				return kept;
			}
			to[at++] = chunk[i];
			if (chunk[i] != '\n') {
				continue;
			}
			/* begin-end r-xp ... */
			uint64_t space = kept;
			while (to[space] != ' ' && space + 4 < at) {
				space++;
			}
			if (to[space + 3] == 'x') {
				kept = at;
			}
			at = kept;
		}
	}
	return kept;
}

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
		samples->objects_bytes = copy_lines(fd, samples->objects,
						    sizeof samples->objects);
		prim_syscall(SYS_close, fd, 0, 0, 0);
	}
	__atomic_store_n(&samples->is_listing, 0, __ATOMIC_RELEASE);
}
