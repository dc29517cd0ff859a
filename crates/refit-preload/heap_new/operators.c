/* Counts what C++ allocates above an allocator that has its own operators new and
 * delete. Preloaded only where one does: elsewhere they call malloc, and a
 * program that loads the C++ library later would find no operator after these.
 */
#include <stddef.h>

#include "heap.h"
#include "prim.h"
#include "symbol.h"

/* Mangled names of the Itanium C++ ABI, in which m is size_t: the operators for one
 * object and for arrays, plain, aligned, nothrow, and both. The number tells which
 * arguments stand for what is passed through. */
#define NEW(X)                                                                 \
	X(_Znwm, 0)                                                            \
	X(_Znam, 0)                                                            \
	X(_ZnwmRKSt9nothrow_t, 1)                                              \
	X(_ZnamRKSt9nothrow_t, 1)                                              \
	X(_ZnwmSt11align_val_t, 1)                                             \
	X(_ZnamSt11align_val_t, 1)                                             \
	X(_ZnwmSt11align_val_tRKSt9nothrow_t, 2)                               \
	X(_ZnamSt11align_val_tRKSt9nothrow_t, 2)

#define DELETE(X)                                                              \
	X(_ZdlPv, 0)                                                           \
	X(_ZdaPv, 0)                                                           \
	X(_ZdlPvm, 1)                                                          \
	X(_ZdaPvm, 1)                                                          \
	X(_ZdlPvRKSt9nothrow_t, 1)                                             \
	X(_ZdaPvRKSt9nothrow_t, 1)                                             \
	X(_ZdlPvSt11align_val_t, 1)                                            \
	X(_ZdaPvSt11align_val_t, 1)                                            \
	X(_ZdlPvmSt11align_val_t, 2)                                           \
	X(_ZdaPvmSt11align_val_t, 2)                                           \
	X(_ZdlPvSt11align_val_tRKSt9nothrow_t, 2)                              \
	X(_ZdaPvSt11align_val_tRKSt9nothrow_t, 2)

#define TYPED_0
#define TYPED_1 , void *one
#define TYPED_2 , void *one, void *two
#define PASSED_0
#define PASSED_1 , one
#define PASSED_2 , one, two

/* An operator that calls malloc is counted there. */
struct operator {
	void *function; /* NULL: not looked up yet */
	int counts;
};

static void *found(struct operator *operator, const char *name)
{
	void *function =
		__atomic_load_n(&operator->function, __ATOMIC_ACQUIRE);
	if (UNLIKELY(!function)) {
		function = refit_symbol_later(RTLD_NEXT, name);
		operator->counts = refit_heap_is_of_allocator(function);
		__atomic_store_n(&operator->function, function,
				 __ATOMIC_RELEASE);
	}
	return function;
}

#define X(name, n)                                                             \
	static struct operator next_##name;                                    \
	EXPORT void *name(size_t size TYPED_##n);                              \
	EXPORT void *name(size_t size TYPED_##n)                               \
	{                                                                      \
		void *(*next)(size_t size TYPED_##n);                          \
		*(void **)&next = found(&next_##name, #name);                  \
		void *block = next(size PASSED_##n);                           \
		if (next_##name.counts) {                                      \
			refit_heap_note(block, size);                          \
		}                                                              \
		return block;                                                  \
	}
NEW(X)
#undef X

#define X(name, n)                                                             \
	static struct operator next_##name;                                    \
	EXPORT void name(void *block TYPED_##n);                               \
	EXPORT void name(void *block TYPED_##n)                                \
	{                                                                      \
		void (*next)(void *block TYPED_##n);                           \
		*(void **)&next = found(&next_##name, #name);                  \
		if (next_##name.counts) {                                      \
			refit_heap_forget(block);                              \
		}                                                              \
		next(block PASSED_##n);                                        \
	}
DELETE(X)
#undef X
