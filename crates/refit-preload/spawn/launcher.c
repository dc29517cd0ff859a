/* Starts the program of a service with settings that no variable carries, and
 * becomes it: the same process, descriptors and environment.
 *
 * launcher SETTING... FILE ARGUMENT...: FILE is a path, and is argv[0] too, as
 * where systemd or a shell's exec starts it.
 *
 *   thp=never     no transparent huge pages: the kernel keeps what
 *                 PR_SET_THP_DISABLE sets across fork and exec (prctl(2), since
 *                 Linux 3.15)
 *   no-new-privs  PR_SET_NO_NEW_PRIVS, across fork and exec too: exec gives no
 *                 rights of set-id bits and file capabilities (prctl(2))
 *   sync=off      a filter, which stays across fork and exec too, answers the
 *                 calls below with 0 (seccomp(2), SECCOMP_RET_ERRNO)
 *
 * The settings are made in their order: a filter that needs no-new-privs stands
 * after it.
 *
 * Where the kernel refuses, the program is started all the same.
 *
 * Rules: as in spawn.c.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "../sync/prim.h"

#define ANSWERED(call)                                                         \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1),                 \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0)

/* Mirrored in refit-services/src/sync_filter.rs. Programs of another architecture
 * get the real calls, and so do those of x32, whose numbers have a bit more. */
static const struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH_AUDIT, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	ANSWERED(fsync),
	ANSWERED(fdatasync),
	ANSWERED(sync_file_range),
	ANSWERED(sync),
	ANSWERED(syncfs),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

/* The kernel takes it from who has CAP_SYS_ADMIN or no_new_privs, and answers
 * EACCES otherwise. no_new_privs is set only where it is asked for: it takes the
 * rights of set-id programs away from all that the program starts. And not by
 * seccomp(2): a sandbox that kills on unknown calls may permit prctl alone
 * (@system-service of systemd 252). Its price is SECCOMP_FILTER_FLAG_SPEC_ALLOW, which prctl has not:
 * kernels before 5.16 slow a program with a filter down. */
static void answer_syncs(void)
{
	const struct sock_fprog program = {
		.len = sizeof(filter) / sizeof(*filter),
		.filter = (struct sock_filter *)(uintptr_t)filter,
	};

	prim_syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0);
}

__attribute__((used, noreturn)) static void start(long *stack)
{
	char **argv = (char **)(stack + 1);
	char **envp = argv + stack[0] + 1;
	/* As env(1): 127 where there is no such file, else 126. */
	int code = 127;

	for (argv++; *argv; argv++) {
		if (prim_equal(*argv, "thp=never")) {
			prim_syscall6(SYS_prctl, PR_SET_THP_DISABLE, 1, 0, 0, 0, 0);
		} else if (prim_equal(*argv, "no-new-privs")) {
			prim_syscall6(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
		} else if (prim_equal(*argv, "sync=off")) {
			answer_syncs();
		} else {
			break;
		}
	}
	if (*argv && prim_syscall(SYS_execve, *argv, argv, envp, 0) != -ENOENT) {
		code = 126;
	}
	prim_syscall(SYS_exit_group, code, 0, 0, 0);
	__builtin_unreachable();
}

ARCH_ENTRY(start);
