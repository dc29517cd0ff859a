#include "own_memory.h"

#include <sys/mman.h>

#include "heap_page.h"
#include "own_seccomp_of_sync.h"
#include "prim.h"

/* Each region is twice the size of the one before, so that few are needed. What
 * is not written is not resident. */
#define FIRST_REGION ((size_t)2 << 20)
/* Where the address space is limited: the counters and the samples. */
#define ONLY_REGION ((size_t)256 << 10)
#define REGIONS REFIT_HEAP_REGIONS

static struct {
	char *at; /* NULL: not mapped */
	size_t used;
} regions[REGIONS];

static size_t current;
/* No region from here on is mapped. */
static size_t most = REGIONS;
static size_t first_size = FIRST_REGION;
static refit_region_listener *listener;

static size_t size_of_region(size_t i)
{
	return first_size << i;
}

static char *map_region(size_t size)
{
	long at = prim_syscall6(SYS_mmap, 0, (long)size,
				PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
				0);
	if (prim_failed(at)) {
		return NULL;
	}
	if (refit_has_own_seccomp()) {
		return (char *)at;
	}
	/* Both also keep the kernel from merging it with the program's. */
	prim_syscall(SYS_madvise, at, size, MADV_DONTDUMP, 0);
	prim_syscall(SYS_madvise, at, size, MADV_NOHUGEPAGE, 0);
	return (char *)at;
}

/* The region's address; maps it when nobody has. */
static char *region(size_t i)
{
	char *at = __atomic_load_n(&regions[i].at, __ATOMIC_ACQUIRE);
	if (at) {
		return at;
	}
	char *made = map_region(size_of_region(i));
	if (!made) {
		return NULL;
	}
	if (!__atomic_compare_exchange_n(&regions[i].at, &at, made, 0,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		prim_syscall(SYS_munmap, made, size_of_region(i), 0, 0);
		return at;
	}
	if (listener) {
		listener(made, size_of_region(i));
	}
	return made;
}

void *refit_own_memory(size_t size)
{
	size = (size + 63) & ~(size_t)63;
	for (;;) {
		size_t i = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
		if (i >= most) {
			return NULL;
		}
		char *at = region(i);
		if (!at) {
			return NULL;
		}
		size_t used = __atomic_fetch_add(&regions[i].used, size,
						 __ATOMIC_RELAXED);
		if (used + size <= size_of_region(i)) {
			return at + used;
		}
		__atomic_compare_exchange_n(&current, &i, i + 1, 0,
					    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
}

void refit_own_memory_tell(refit_region_listener *to)
{
	listener = to;
	for (size_t i = 0; i <= current; i++) {
		to(regions[i].at, size_of_region(i));
	}
}

void refit_own_memory_spare(void)
{
	most = 1;
	first_size = ONLY_REGION;
}

void refit_own_memory_end(void)
{
	for (size_t i = 0; i < REGIONS; i++) {
		if (regions[i].at) {
			prim_syscall(SYS_munmap, regions[i].at,
				     size_of_region(i), 0, 0);
			regions[i].at = NULL;
		}
	}
	most = 0;
}
