/* Starts a program without transparent huge pages, and becomes it: the same
 * process, descriptors and environment.
 *
 * without-huge-pages FILE ARGUMENT...: FILE is a path, and is argv[0] too, as
 * where systemd starts it.
 *
 * The kernel keeps what PR_SET_THP_DISABLE sets across fork and exec (prctl(2),
 * since Linux 3.15). Where it refuses, the program is started all the same.
 *
 * Rules: as in spawn.c.
 */
#include <sys/prctl.h>

#include "../sync/prim.h"

__attribute__((used, noreturn)) static void start(long *stack)
{
	char **argv = (char **)(stack + 1);
	char **envp = argv + stack[0] + 1;
	/* As env(1): 127 where there is no such file, else 126. */
	int code = 127;

	prim_syscall6(SYS_prctl, PR_SET_THP_DISABLE, 1, 0, 0, 0, 0);
	if (stack[0] > 1 &&
	    prim_syscall(SYS_execve, argv[1], argv + 1, envp, 0) != -ENOENT) {
		code = 126;
	}
	prim_syscall(SYS_exit_group, code, 0, 0, 0);
	__builtin_unreachable();
}

ARCH_ENTRY(start);
