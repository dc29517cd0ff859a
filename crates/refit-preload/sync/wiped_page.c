#include "wiped_page.h"

#include <sys/mman.h>

#include "prim.h"

void *refit_map_wiped_page(void)
{
	long at = prim_syscall6(SYS_mmap, 0, REFIT_WIPED_PAGE,
				PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (prim_failed(at)) {
		return NULL;
	}
	if (prim_syscall(SYS_madvise, at, REFIT_WIPED_PAGE,
			 18 /* MADV_WIPEONFORK */, 0) != 0) {
		prim_syscall(SYS_munmap, at, REFIT_WIPED_PAGE, 0, 0);
		return NULL;
	}
	return (void *)at;
}
