#include "next_calls.h"

#include "symbol.h"

struct refit_next_calls refit_next_calls;

static int all_found;

void refit_find_next_calls(void)
{
	if (all_found) {
		return;
	}
#define X(type, name, args)                                                    \
	*(void **)&refit_next_calls.name = refit_symbol(RTLD_NEXT, #name);
	REFIT_NEXT_CALLS(X)
	REFIT_ASKED(X)
#undef X
	all_found = 1;
}

__attribute__((constructor)) static void construct(void)
{
	refit_find_next_calls();
}
