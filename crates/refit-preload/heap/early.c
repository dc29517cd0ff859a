#include "early.h"

#include "prim.h"

char refit_early[1 << 14] __attribute__((aligned(16)));

static size_t used;

void *refit_early_allocate(size_t size)
{
	if (size > sizeof refit_early) {
		return NULL;
	}
	/* Its size stands before a block. */
	size_t whole = (size + 16 + 15) & ~(size_t)15;
	size_t at = __atomic_fetch_add(&used, whole, __ATOMIC_RELAXED);
	if (at + whole > sizeof refit_early) {
		return NULL;
	}
	__builtin_memcpy(refit_early + at, &size, sizeof size);
	return refit_early + at + 16;
}

size_t refit_early_size(const void *block)
{
	size_t size;
	__builtin_memcpy(&size, (const char *)block - 16, sizeof size);
	return size;
}
