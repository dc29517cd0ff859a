#include "own_counters.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "field.h"
#include "own_seccomp_of_sync.h"

static struct refit_heap_mark mark_at_start;

struct refit_heap_counters refit_heap = {.mark = &mark_at_start};

REFIT_INITIAL_EXEC __thread struct refit_heap_slot *refit_heap_mine;
REFIT_INITIAL_EXEC __thread struct refit_heap_quick *refit_heap_quick;

int refit_heap_is_own(void)
{
	ptrdiff_t distance = refit_heap.mark->distance;
	uint32_t pid = (uint32_t)prim_syscall(SYS_getpid, 0, 0, 0, 0);
	return distance && *(uint32_t *)refit_elsewhere(
				   &refit_heap.own->process.pid, distance) == pid;
}

/* The directory of the tasks has a link for each of them, and two of its own
 * (fs/proc/base.c, proc_task_getattr). */
int refit_is_alone(void)
{
	struct stat tasks;
	return !refit_has_own_seccomp() && refit_heap_is_own() &&
	       prim_syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &tasks,
			    0) == 0 &&
	       tasks.st_nlink == 3;
}
