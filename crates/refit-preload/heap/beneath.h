/* The allocator beneath: for each function that we export, the definition that
 * the program would have called without us. */
#ifndef REFIT_HEAP_BENEATH_H
#define REFIT_HEAP_BENEATH_H

#include <stddef.h>
#include <stdint.h>

#include "prim.h"

#define REFIT_BENEATH(X)                                                       \
	X(void *, malloc, (size_t))                                            \
	X(void *, calloc, (size_t, size_t))                                    \
	X(void *, realloc, (void *, size_t))                                   \
	X(void, free, (void *))                                                \
	X(int, posix_memalign, (void **, size_t, size_t))                      \
	X(void *, aligned_alloc, (size_t, size_t))                             \
	X(void *, memalign, (size_t, size_t))                                  \
	X(void *, valloc, (size_t))                                            \
	X(void *, pvalloc, (size_t))                                           \
	X(size_t, malloc_usable_size, (void *))

struct refit_beneath {
#define X(type, name, arguments) type(*name) arguments;
	REFIT_BENEATH(X)
#undef X
	/* Whether a function is of the object that malloc is of: only then it
	 * gives out, or tells of, blocks of the same allocator. */
#define X(type, name, arguments) unsigned char name##_is_same;
	REFIT_BENEATH(X)
#undef X
	int tells_usable; /* enum refit_tells_usable */
	/* What is usable is not known, and is counted as what was requested. */
	int hides_usable;
	int is_glibc;
};

/* Whether malloc_usable_size can be asked. */
enum refit_tells_usable {
	REFIT_TELLS_NOTHING,
	REFIT_TELLS_UNASKED, /* yes, and it was not yet */
	REFIT_TELLS,
};

/* NULL before they were looked up, and where nobody defines such a function. */
extern HIDDEN struct refit_beneath refit_beneath;

void refit_find_beneath(void);

/* The addresses of one loaded object. */
struct refit_object {
	uintptr_t begin, end; /* 0: there is none */
};

/* The object that holds an address. */
struct refit_object refit_object_of(const void *address);

static inline int refit_is_in(struct refit_object object, const void *address)
{
	return (uintptr_t)address - object.begin < object.end - object.begin;
}

#endif
