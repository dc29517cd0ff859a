#include "file_pages.h"

#include "own_seccomp_of_sync.h"
#include "prim.h"

#define MADV_POPULATE_WRITE_NUMBER 23 /* Linux 5.14 */

/* To write a page that is not allocated would end the program with SIGBUS when the
 * file system is full. */
int refit_heap_allocate(const void *page, size_t size)
{
	return !refit_has_own_seccomp() &&
	       prim_syscall(SYS_madvise, page, size, MADV_POPULATE_WRITE_NUMBER,
			    0) == 0;
}
