#include "ring_memory.h"

#include <linux/io_uring.h>
#include <sys/mman.h>

#include "next.h"

struct own_ring *refit_rings;

struct own_ring *refit_find_ring(int fd)
{
	for (int i = 0; refit_rings && i < REFIT_RINGS; i++) {
		if (refit_rings[i].fd == fd && refit_rings[i].fate != FREE) {
			return &refit_rings[i];
		}
	}
	return NULL;
}

static void mapped(char *at, size_t size, int protection, int fd, off_t offset)
{
	struct own_ring *ring = refit_find_ring(fd);
	if (!ring || (protection & (PROT_READ | PROT_WRITE)) !=
			     (PROT_READ | PROT_WRITE)) {
		return;
	}
	if (offset == IORING_OFF_SQ_RING) {
		ring->queue = at;
		ring->queue_size = size;
	} else if (offset == IORING_OFF_SQES) {
		ring->sqes = at;
		ring->sqes_size = size;
	} else if (offset == IORING_OFF_CQ_RING) {
		ring->completions = at;
		ring->completions_size = size;
	}
}

static int overlaps(const char *one, size_t size, const char *at, size_t length)
{
	return one && one < at + length && at < one + size;
}

static struct own_ring *ring_in(const void *at, size_t size)
{
	for (int i = 0; UNLIKELY(refit_rings != NULL) && i < REFIT_RINGS; i++) {
		struct own_ring *ring = &refit_rings[i];
		if (overlaps(ring->queue, ring->queue_size, at, size) ||
		    overlaps(ring->sqes, ring->sqes_size, at, size) ||
		    overlaps(ring->completions, ring->completions_size, at,
			     size)) {
			return ring;
		}
	}
	return NULL;
}

int refit_ring_lies_in(const void *at, size_t size)
{
	return ring_in(at, size) != NULL;
}

void refit_forget_mapping(const void *at, size_t size)
{
	struct own_ring *ring;
	while ((ring = ring_in(at, size))) {
		ring->queue = NULL;
		ring->sqes = NULL;
		ring->completions = NULL;
		ring->fate = FREE;
	}
}

static void *map_by(void *(*next)(void *, size_t, int, int, int, off_t),
		    void *wanted, size_t size, int protection, int flags, int fd,
		    off_t offset)
{
	if (flags & MAP_FIXED) {
		refit_forget_mapping(wanted, size);
	}
	void *at = next ? next(wanted, size, protection, flags, fd, offset)
			: (void *)prim_result(
				  prim_syscall6(SYS_mmap, (long)wanted,
						(long)size, protection, flags,
						fd, offset));
	if (UNLIKELY(refit_rings && fd >= 0 && at != MAP_FAILED)) {
		mapped(at, size, protection, fd, offset);
	}
	return at;
}

EXPORT void *mmap(void *wanted, size_t size, int protection, int flags, int fd,
		  off_t offset)
{
	return map_by(refit_next.mmap, wanted, size, protection, flags, fd,
		      offset);
}

EXPORT void *mmap64(void *wanted, size_t size, int protection, int flags, int fd,
		    off64_t offset)
{
	return map_by(refit_next.mmap64 ? refit_next.mmap64 : refit_next.mmap,
		      wanted, size, protection, flags, fd, offset);
}

EXPORT int munmap(void *at, size_t size)
{
	refit_forget_mapping(at, size);
	return refit_next.munmap
		       ? refit_next.munmap(at, size)
		       : (int)prim_result(prim_syscall(SYS_munmap, at, size, 0, 0));
}
