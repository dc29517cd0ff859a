/* Counters, which are kept in private memory and, at a distance from there, in the
 * file of the image. */
#ifndef REFIT_HEAP_FIELD_H
#define REFIT_HEAP_FIELD_H

#include <stddef.h>
#include <stdint.h>

#include "prim.h"

static inline uint64_t refit_load(const uint64_t *field)
{
	return __atomic_load_n(field, __ATOMIC_RELAXED);
}

static inline uint64_t *refit_elsewhere(const void *field, ptrdiff_t distance)
{
	return (uint64_t *)(uintptr_t)((const char *)field + distance);
}

/* Fields that other threads write too. */
static inline uint64_t refit_add_shared(uint64_t *field, uint64_t n, ptrdiff_t distance)
{
	uint64_t sum = __atomic_add_fetch(field, n, __ATOMIC_RELAXED);
	if (distance) {
		__atomic_fetch_add(refit_elsewhere(field, distance), n,
				   __ATOMIC_RELAXED);
	}
	return sum;
}

/* Fields that one thread writes, and that are in private memory only. */
static inline uint64_t refit_add_private(uint64_t *field, uint64_t n)
{
	uint64_t sum = refit_load(field) + n;
	__atomic_store_n(field, sum, __ATOMIC_RELAXED);
	return sum;
}

/* Fields that one thread writes. */
static inline uint64_t refit_add_own(uint64_t *field, uint64_t n, ptrdiff_t distance)
{
	uint64_t sum = refit_add_private(field, n);
	__atomic_store_n(refit_elsewhere(field, distance), sum, __ATOMIC_RELAXED);
	return sum;
}

/* Single words, none of which is ever seen half written. */
static inline void refit_copy_words(void *to, const void *from, size_t size)
{
	const uint64_t *source = from;
	uint64_t *target = to;
	for (size_t i = 0; i < size / sizeof *source; i++) {
		__atomic_store_n(&target[i], refit_load(&source[i]),
				 __ATOMIC_RELAXED);
	}
}

#endif
