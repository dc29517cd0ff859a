/* The spawner: starts the program of a measured run.
 *
 * Linux hands the peak of a process's memory on at exec: after it, ru_maxrss is
 * at least what the image before had (exec_mmap in fs/exec.c), and a child that
 * refit starts has refit's own memory until then, some MB. So a measured run
 * is started from here, an image of a few pages. The program stays a child of
 * refit (CLONE_PARENT), with refit as its parent in every respect; this process
 * ends as soon as the program is exec'ed.
 *
 * spawn FILE FD ARGUMENT...: execs FILE with these arguments and this process's
 * environment, and writes what became of it to FD.
 *
 * Rules: no C library, no memory but the stack, nothing that touches more pages.
 */
#include <linux/sched.h>
#include <signal.h>

#include "../sync/prim.h"

/* What refit reads; mirrored in refit-launch/src/sys/spawner.rs. */
struct report {
	int64_t began_ns; /* CLOCK_MONOTONIC, before the program's process is made */
	int32_t pid;	  /* its process, or -errno */
	int32_t error;	  /* errno of the exec, or 0 */
};

/* As vfork(2): parent and child share memory and stack, and the parent waits for
 * the exec. In one place with its use, so that nobody returns from here twice. */
static void start(const char *file, int fd, char **argv, char **envp)
{
	struct timespec now;
	volatile struct report report = { 0 };
	unsigned long flags = CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD;

	prim_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now, 0, 0);
	report.began_ns = now.tv_sec * 1000000000l + now.tv_nsec;
	long pid = prim_syscall(SYS_clone, flags, 0, 0, 0);
	if (pid == 0) {
		/* A session of its own, and nothing of this one's. */
		prim_syscall(SYS_setsid, 0, 0, 0, 0);
		prim_syscall(SYS_close, fd, 0, 0, 0);
		report.error = -(int32_t)prim_syscall(SYS_execve, file, argv, envp, 0);
		prim_syscall(SYS_exit_group, 127, 0, 0, 0);
		__builtin_unreachable();
	}
	report.pid = (int32_t)pid;
	prim_syscall(SYS_write, fd, &report, sizeof(report), 0);
}

/* The stack as the kernel leaves it: argc, argv, NULL, envp, NULL. */
__attribute__((used, noreturn)) static void spawn(long *stack)
{
	char **argv = (char **)(stack + 1);
	char **envp = argv + stack[0] + 1;
	int fd = 0;

	for (const char *digit = argv[1]; *digit; digit++) {
		fd = 10 * fd + (*digit - '0');
	}
	start(argv[0], fd, argv + 2, envp);
	prim_syscall(SYS_exit_group, 0, 0, 0, 0);
	__builtin_unreachable();
}

ARCH_ENTRY(spawn);
