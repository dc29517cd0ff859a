/* Following a program into what it starts.
 *
 * Before an exec or posix_spawn the target is looked at. Where the preload can
 * reach it, refit's own variables, and only those, are put back when the caller
 * cleared them. Where it cannot, the target's name is recorded, and our entries
 * are taken out of LD_PRELOAD where ld.so would complain about them on the
 * program's stderr, or refuse to start.
 *
 * All of it runs between vfork and exec too: memory comes from the stack, and
 * nothing is kept in variables.
 */
#include <alloca.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <unistd.h>

#include "departure.h"
#include "exec.h"
#include "exec_environment.h"
#include "next.h"
#include "own_seccomp.h"
#include "target.h"

#define ENVIRONMENT_MAX 1024 /* entries; a larger one passes unchanged */

extern char **environ;

/* Defines the body of an exec function: fills env for the target and makes
 * CALL, of type TYPE, with `use` as the environment. A macro, because the room
 * for the entries is the stack of the calling function. LOOK looks at the
 * target; PATH names it where nobody may look. */
#define WITH_ENVIRONMENT(LOOK, PATH, ENVP, REPLACES, TYPE, CALL)               \
	if (!refit.policy) {                                                   \
		char *const *use = (ENVP);                                     \
		return CALL;                                                   \
	}                                                                      \
	struct refit_target target;                                            \
	if (refit_beneath_own_seccomp()) {                                               \
		refit_target_only_name((PATH), &target);                       \
	} else {                                                               \
		LOOK;                                                          \
	}                                                                      \
	uint32_t reason = refit_reason_not_reached(&target);                   \
	struct refit_environment env;                                          \
	env.entries = (ENVP);                                                  \
	size_t entries = refit_environment_room(ENVP);                         \
	/* Threads may have small stacks. */                                   \
	if (entries <= ENVIRONMENT_MAX) {                                      \
		char **room = alloca(entries * sizeof *room);                  \
		refit_environment_sizes(&env, (ENVP));                         \
		env.preload = alloca(env.preload_size);                        \
		env.session = alloca(env.session_size);                        \
		refit_compose_environment(&env, room, (ENVP), reason,          \
					  target.kind);                        \
	}                                                                      \
	char *const *use = env.entries;                                        \
	struct refit_departure departure =                                     \
		refit_depart(&target, reason, use, (REPLACES));                \
	TYPE result = CALL;                                                    \
	if ((REPLACES) || result != 0) {                                       \
		refit_stay(departure);                                         \
	}                                                                      \
	return result

/* Looks at what execvp would run: the first executable file of that name in
 * PATH. */
static void look_in_path(const char *file, struct refit_target *out)
{
	for (const char *c = file; *c; c++) {
		if (*c == '/') {
			refit_target_look(AT_FDCWD, file, out);
			return;
		}
	}
	const char *path = prim_env(environ, "PATH=");
	if (!path) {
		path = "/bin:/usr/bin";
	}
	size_t length = prim_length(file), longest = 0;
	for (const char *at = path; *at;) {
		size_t n = 0;
		while (at[n] && at[n] != ':') {
			n++;
		}
		longest = n > longest ? n : longest;
		at += at[n] ? n + 1 : n;
	}
	/* A thread's stack may be small. A longer path is none (PATH_MAX). */
	size_t size = longest + length + 2 < 4096 ? longest + length + 2 : 4096;
	char *name = alloca(size);
	while (*path || *file) {
		size_t n = 0;
		while (path[n] && path[n] != ':') {
			n++;
		}
		if (n + length + 2 <= size) {
			char *end = name;
			for (size_t i = 0; i < n; i++) {
				*end++ = path[i];
			}
			if (n) {
				*end++ = '/';
			}
			prim_copy(end, file, length + 1);
			if (prim_syscall(SYS_faccessat, AT_FDCWD, name, X_OK,
					 0) == 0) {
				refit_target_look(AT_FDCWD, name, out);
				return;
			}
		}
		if (!path[n]) {
			break;
		}
		path += n + 1;
	}
	refit_target_look(AT_FDCWD, "", out);
}

/* Without a path there is nothing to look at: the kernel says so. */
long refit_execve(const char *path, char *const *argv, char *const *envp)
{
	if (!path) {
		return prim_syscall(SYS_execve, path, argv, envp, 0);
	}
	WITH_ENVIRONMENT(refit_target_look(AT_FDCWD, path, &target), path,
			 envp, 1, long,
			 prim_syscall(SYS_execve, path, argv, use, 0));
}

long refit_execveat(int dirfd, const char *path, char *const *argv,
		    char *const *envp, int flags)
{
	if (!path) {
		return prim_syscall6(SYS_execveat, dirfd, 0, (long)argv,
				     (long)envp, flags, 0);
	}
	int by_fd = (flags & AT_EMPTY_PATH) && !*path;
	WITH_ENVIRONMENT(by_fd ? refit_target_look_fd(dirfd, &target)
			       : refit_target_look(dirfd, path, &target),
			 path, envp, 1, long,
			 prim_syscall6(SYS_execveat, dirfd, (long)path,
				       (long)argv, (long)use, flags, 0));
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	if (!refit_next.execve) {
		return (int)prim_result(refit_execve(path, argv, envp));
	}
	WITH_ENVIRONMENT(refit_target_look(AT_FDCWD, path, &target), path,
			 envp, 1, int, refit_next.execve(path, argv, use));
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	if (!NEXT(execvpe)) {
		errno = ENOSYS;
		return -1;
	}
	WITH_ENVIRONMENT(look_in_path(file, &target), file, envp, 1, int,
			 refit_next.execvpe(file, argv, use));
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

/* Another preload (fakechroot) may search in places of its own: then its execvp
 * is called, with the environment as it is, and calls its own execve. */
EXPORT int execvp(const char *file, char *const argv[])
{
	if (refit_next.foreign_execvp) {
		return refit_next.execvp(file, argv);
	}
	return execvpe(file, argv, environ);
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
	if (!NEXT(fexecve)) {
		errno = ENOSYS;
		return -1;
	}
	WITH_ENVIRONMENT(refit_target_look_fd(fd, &target), "", envp, 1, int,
			 refit_next.fexecve(fd, argv, use));
}

EXPORT int execveat(int dirfd, const char *path, char *const argv[],
		    char *const envp[], int flags)
{
	return (int)prim_result(refit_execveat(dirfd, path, argv, envp, flags));
}

EXPORT int posix_spawn(pid_t *pid, const char *path,
		       const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const argv[],
		       char *const envp[])
{
	if (!NEXT(posix_spawn)) {
		return ENOSYS;
	}
	WITH_ENVIRONMENT(refit_target_look(AT_FDCWD, path, &target), path,
			 envp, 0, int,
			 refit_next.posix_spawn(pid, path, actions, attributes,
						argv, use));
}

EXPORT int posix_spawnp(pid_t *pid, const char *file,
			const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attributes, char *const argv[],
			char *const envp[])
{
	if (!NEXT(posix_spawnp)) {
		return ENOSYS;
	}
	WITH_ENVIRONMENT(look_in_path(file, &target), file, envp, 0, int,
			 refit_next.posix_spawnp(pid, file, actions, attributes,
						 argv, use));
}

/* The list forms: the arguments up to NULL, from the stack of the caller. */
#define LIST_TO_ARGV(last, argv)                                               \
	va_list args;                                                          \
	va_start(args, last);                                                  \
	size_t count = 1;                                                      \
	while (va_arg(args, char *)) {                                         \
		count++;                                                       \
	}                                                                      \
	va_end(args);                                                          \
	char **argv = alloca((count + 1) * sizeof *argv);                      \
	argv[0] = (char *)(uintptr_t)last;                                     \
	va_start(args, last);                                                  \
	for (size_t i = 1; i <= count; i++) {                                  \
		argv[i] = va_arg(args, char *);                                \
	}

EXPORT int execl(const char *path, const char *first, ...)
{
	LIST_TO_ARGV(first, argv)
	va_end(args);
	return execve(path, argv, environ);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
	LIST_TO_ARGV(first, argv)
	va_end(args);
	return execvp(file, argv);
}

EXPORT int execle(const char *path, const char *first, ...)
{
	LIST_TO_ARGV(first, argv)
	char *const *envp = va_arg(args, char *const *);
	va_end(args);
	return execve(path, argv, envp);
}
