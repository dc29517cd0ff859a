#include "next.h"

#include "symbol.h"

struct refit_next refit_next;

/* For stubs.S. */
void *refit_next_syscall __attribute__((visibility("hidden")));
void *refit_next_dlopen __attribute__((visibility("hidden")));
void *refit_find_dlopen(void);

static int all_found;

void *refit_find_dlopen(void)
{
	refit_next_dlopen = refit_symbol(RTLD_NEXT, "dlopen");
	return refit_next_dlopen;
}

void refit_find_next(void)
{
	if (all_found) {
		return;
	}
#define X(type, name, args)                                                    \
	*(void **)&refit_next.name = refit_symbol(RTLD_NEXT, #name);
	REFIT_NEXT(X)
	REFIT_NEXT_AIO(X)
	REFIT_NEXT_URING(X)
#undef X
	refit_next_syscall = refit_symbol(RTLD_NEXT, "syscall");
	refit_find_dlopen();
	refit_next.foreign_execvp =
		refit_next.execvp && refit_next.execvpe &&
		refit_definition(RTLD_NEXT, "execvp").object !=
			refit_definition(RTLD_NEXT, "execvpe").object;
	all_found = 1;
}

/* A library that came by dlopen may have brought another along for itself alone
 * (RTLD_LOCAL): the name leads its calls to us. */
void refit_find_later(void)
{
	refit_find_next();
#define X(type, name, args)                                                    \
	if (!refit_next.name) {                                                \
		void *found = refit_symbol_later(RTLD_NEXT, #name);            \
		if (found) {                                                   \
			__atomic_store_n((void **)&refit_next.name, found,     \
					 __ATOMIC_RELAXED);                    \
		}                                                              \
	}
	REFIT_NEXT_AIO(X)
	REFIT_NEXT_URING(X)
#undef X
}
