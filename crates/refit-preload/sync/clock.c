#include "clock.h"

#include "symbol.h"

int (*prim_vdso_clock)(clockid_t, struct timespec *);

void refit_find_clock(void)
{
	*(void **)&prim_vdso_clock = refit_symbol(RTLD_DEFAULT, ARCH_VDSO_CLOCK);
}
