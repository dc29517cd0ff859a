#include "file_pages.h"

#include <sys/auxv.h>

#include "own_seccomp_of_sync.h"
#include "prim.h"

#define MADV_POPULATE_WRITE_NUMBER 23 /* Linux 5.14 */

/* To write a page that is not allocated would end the program with SIGBUS when the
 * file system is full. */
int refit_heap_allocate(const void *at, size_t size)
{
	/* Whole pages of the kernel's, some of which have 64 KiB. */
	uintptr_t page = getauxval(AT_PAGESZ);
	uintptr_t begin = (uintptr_t)at & ~(page - 1);
	size_t bytes = (uintptr_t)at + size - begin;
	return !refit_has_own_seccomp() &&
	       prim_syscall(SYS_madvise, begin, bytes,
			    MADV_POPULATE_WRITE_NUMBER, 0) == 0;
}
