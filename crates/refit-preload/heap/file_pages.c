#include "file_pages.h"

#include "own_seccomp_of_sync.h"
#include "prim.h"

#define MADV_POPULATE_WRITE_NUMBER 23 /* Linux 5.14 */

/* Pages of the file are written only when they are there: on a full file system
 * the kernel would end the program with SIGBUS. */
int refit_heap_allocate(const void *page, size_t size)
{
	return !refit_has_own_seccomp() &&
	       prim_syscall(SYS_madvise, page, size, MADV_POPULATE_WRITE_NUMBER,
			    0) == 0;
}
