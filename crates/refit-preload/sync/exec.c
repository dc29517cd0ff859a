/* Following a program into what it starts.
 *
 * Before an exec or posix_spawn the target is looked at. Where the preload can
 * reach it, refit's own variables, and only those, are put back when the
 * caller scrubbed them. Where it cannot, the target is noted by name, and our
 * entries are taken out of LD_PRELOAD where ld.so would complain about them on
 * the program's stderr, or refuse to start.
 *
 * All of it runs between vfork and exec too: memory comes from the stack, and
 * nothing is kept in variables.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "state.h"
#include "target.h"

#define ST_NOEXEC_FLAG 0x8     /* statfs(2), ST_NOEXEC */
#define ENVIRONMENT_MAX 1024   /* entries; a larger one passes unchanged */
#define PRELOAD_ROOM 4096      /* bytes of an LD_PRELOAD of ours */

extern char **environ;

static const char *text(uint32_t offset)
{
	return refit.policy->text + (offset < REFIT_TEXT ? offset : 0);
}

/* ---- what is exec'ed --------------------------------------------------- */

/* ld.so of the new program opens our library, and the library the session, in
 * the root that the caller has now. */
static int visible_here(void)
{
	struct statfs fs;
	if (prim_syscall(SYS_statfs, text(refit.policy->library), &fs, 0, 0) < 0 ||
	    (fs.f_flags & ST_NOEXEC_FLAG)) {
		return 0;
	}
	char path[512];
	char *end = prim_copy(path, text(refit.policy->session),
			      sizeof path - 8);
	prim_copy(end, "/policy", 8);
	return prim_syscall(SYS_faccessat, AT_FDCWD, path, R_OK, 0) == 0;
}

static uint32_t reason_not_reached(const struct refit_target *target)
{
	if (target->reason != REFIT_REASON_REACHED) {
		return target->reason;
	}
	if (refit.own_seccomp) {
		return REFIT_REASON_OWN_SECCOMP;
	}
	return visible_here() ? REFIT_REASON_REACHED
			      : REFIT_REASON_LIBRARY_HIDDEN;
}

static uint32_t hash(const char *name, uint32_t reason)
{
	uint32_t h = 2166136261u ^ reason;
	for (; *name; name++) {
		h = (h ^ (unsigned char)*name) * 16777619u;
	}
	return h;
}

/* The end of a long path says more than its beginning. */
static void copy_name(char *to, const char *path, size_t size)
{
	size_t n = prim_length(path);
	prim_copy(to, n < size ? path : path + (n - size + 1), size);
}

/* An open-addressing table in the image; an entry that is being written by
 * somebody else (who may have died over it) is passed over. */
static struct refit_unreached *note_unreached(const char *path, uint32_t reason)
{
	struct refit_image *image = refit.image;
	char name[sizeof image->unreached[0].name];
	copy_name(name, path, sizeof name);
	uint32_t at = hash(name, reason);
	for (uint32_t i = 0; i < REFIT_UNREACHED; i++) {
		struct refit_unreached *u =
			&image->unreached[(at + i) % REFIT_UNREACHED];
		uint32_t state = __atomic_load_n(&u->state, __ATOMIC_ACQUIRE);
		if (state == 0 && __atomic_compare_exchange_n(
					  &u->state, &state, 1, 0,
					  __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
			u->reason = reason;
			prim_copy(u->name, name, sizeof u->name);
			__atomic_store_n(&u->state, 2, __ATOMIC_RELEASE);
			state = 2;
		}
		if (state == 2 && u->reason == reason &&
		    prim_equal(u->name, name)) {
			refit_add(&u->count, 1);
			return u;
		}
	}
	__atomic_fetch_add(&image->unreached_lost, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* ---- the environment --------------------------------------------------- */

static int is_ours(const char *entry, size_t size)
{
	const char *lists[2] = {text(refit.policy->library),
				text(refit.policy->preloads)};
	for (int l = 0; l < 2; l++) {
		const char *at = lists[l];
		while (*at) {
			size_t n = 0;
			while (at[n] && at[n] != ':') {
				n++;
			}
			size_t same = 0;
			while (same < n && same < size && at[same] == entry[same]) {
				same++;
			}
			if (n == size && same == n) {
				return 1;
			}
			at += at[n] ? n + 1 : n;
		}
	}
	return 0;
}

/* Appends the entries of an LD_PRELOAD that are not ours; ld.so(8) separates
 * them by colons or spaces. */
static char *append_theirs(char *to, const char *end, const char *begin,
			   const char *theirs)
{
	while (theirs && *theirs) {
		size_t n = 0;
		while (theirs[n] && theirs[n] != ':' && theirs[n] != ' ') {
			n++;
		}
		if (n > 0 && !is_ours(theirs, n)) {
			if ((size_t)(end - to) < n + 2) {
				return NULL;
			}
			if (to != begin) {
				*to++ = ':';
			}
			for (size_t i = 0; i < n; i++) {
				*to++ = theirs[i];
			}
			*to = '\0';
		}
		theirs += theirs[n] ? n + 1 : n;
	}
	return to;
}

struct environment {
	char *const *entries; /* what the program will get */
	char preload[PRELOAD_ROOM];
	char session[512];
};

/* LD_PRELOAD=<ours>:<theirs> where the target takes our libraries, only theirs
 * where it does not. The allocator that refit adds is glibc's kind of library,
 * so a musl program gets the sync library alone. Returns 0 when the result has
 * no entry, -1 when it would not fit. */
static int compose_preload(struct environment *out, const char *theirs,
			   int take, uint32_t kind)
{
	char *begin = prim_copy(out->preload, "LD_PRELOAD=", sizeof out->preload);
	const char *end = out->preload + sizeof out->preload;
	char *at = begin;
	*at = '\0';
	if (take) {
		const char *library = text(refit.policy->library);
		const char *more = text(refit.policy->preloads);
		if (prim_length(library) + prim_length(more) + 2 >
		    (size_t)(end - at)) {
			return -1;
		}
		at = prim_copy(at, library, (size_t)(end - at));
		if (*more && kind != REFIT_TARGET_MUSL) {
			*at++ = ':';
			at = prim_copy(at, more, (size_t)(end - at));
		}
	}
	at = append_theirs(at, end, begin, theirs);
	return at ? at != begin : -1;
}

static size_t count_entries(char *const *envp)
{
	size_t n = 0;
	while (envp && envp[n]) {
		n++;
	}
	return n;
}

/* Room for the entries that may be added: the preload, the session, and the
 * policy's own variables. */
static size_t added_entries(void)
{
	size_t n = 3;
	for (const char *v = text(refit.policy->env); *v; v += prim_length(v) + 1) {
		n++;
	}
	return n;
}

static int same_name(const char *entry, const char *variable)
{
	while (*variable && *variable != '=' && *entry == *variable) {
		entry++;
		variable++;
	}
	return *entry == '=' && *variable == '=';
}

static int has_name(char *const *envp, const char *variable)
{
	for (; envp && *envp; envp++) {
		if (same_name(*envp, variable)) {
			return 1;
		}
	}
	return 0;
}

static void compose(struct environment *out, char **room, char *const *envp,
		    uint32_t reason, uint32_t kind)
{
	const char *theirs = prim_env(envp, "LD_PRELOAD=");
	int follow = (refit.policy->flags & REFIT_POLICY_FOLLOW) != 0;
	int complains = reason == REFIT_REASON_OTHER_ARCHITECTURE ||
			reason == REFIT_REASON_OTHER_LIBC ||
			reason == REFIT_REASON_SANITIZER ||
			reason == REFIT_REASON_OWN_SECCOMP ||
			reason == REFIT_REASON_LIBRARY_HIDDEN;
	if (!follow && !complains) {
		return;
	}
	int has = compose_preload(out, theirs, !complains, kind);
	if (has < 0) {
		return;
	}
	const char *library_entry = prim_behind(out->preload, "LD_PRELOAD=");
	const char *session = prim_env(envp, "REFIT_SESSION=");
	int session_right =
		session && prim_equal(session, text(refit.policy->session));
	int preload_right = has ? theirs && prim_equal(theirs, library_entry)
				: !theirs;
	size_t n = 0;
	if (has && !preload_right) {
		room[n++] = out->preload;
	}
	if (!complains && !session_right) {
		char *end = prim_copy(out->session, "REFIT_SESSION=",
				      sizeof out->session);
		prim_copy(end, text(refit.policy->session),
			  sizeof out->session - 14);
		room[n++] = out->session;
	}
	for (const char *v = text(refit.policy->env); !complains && *v;
	     v += prim_length(v) + 1) {
		if (!has_name(envp, v)) {
			room[n++] = (char *)(uintptr_t)v;
		}
	}
	/* Ours first: mimalloc 2.0 looks at the first 256 variables only. */
	for (char *const *e = envp; e && *e; e++) {
		int is_preload = same_name(*e, "LD_PRELOAD=");
		int is_session = same_name(*e, "REFIT_SESSION=");
		if ((!is_preload || preload_right) &&
		    (!is_session || session_right || complains)) {
			room[n++] = *e;
		}
	}
	room[n] = NULL;
	out->entries = room;
}

/* ---- one exec ---------------------------------------------------------- */

struct departure {
	struct refit_unreached *unreached;
	int expected;
	int replaces; /* exec: this process ends here; spawn: it goes on */
};

static int reached(uint32_t reason, char *const *envp)
{
	if (reason != REFIT_REASON_REACHED) {
		return 0;
	}
	const char *preload = prim_env(envp, "LD_PRELOAD=");
	for (; preload && *preload; preload++) {
		if (prim_behind(preload, text(refit.policy->library))) {
			return 1;
		}
	}
	return 0;
}

/* Whether this process was counted when it was forked (a vfork child was not),
 * and will be counted again by what it becomes. */
static int leaves(int replaces)
{
	return replaces && refit.mark->slot && refit.mark->forked &&
	       refit.mark->pid == (uint32_t)prim_syscall(SYS_getpid, 0, 0, 0, 0);
}

/* A process that dropped its privileges: refit takes the reports of that user
 * for true from now on. */
static void note_user(void)
{
	uint32_t me = (uint32_t)prim_syscall(SYS_geteuid, 0, 0, 0, 0);
	for (int i = 0; i < REFIT_USERS && me != refit.owner; i++) {
		uint32_t free = 0;
		if (__atomic_compare_exchange_n(&refit.image->users[i], &free,
						me, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED) ||
		    free == me) {
			return;
		}
	}
}

static struct departure depart(const struct refit_target *target,
			       uint32_t reason, char *const *envp, int replaces)
{
	struct departure d = {NULL, 0, replaces};
	if (!refit.image) {
		return d;
	}
	if (leaves(replaces)) {
		refit_add(&refit.image->departed, 1);
	}
	if (reached(reason, envp)) {
		d.expected = 1;
		refit_add(&refit.image->execs, 1);
		note_user();
	} else {
		d.unreached = note_unreached(target->path,
					     reason == REFIT_REASON_REACHED
						     ? REFIT_REASON_ENVIRONMENT
						     : reason);
	}
	return d;
}

/* The exec failed, and so nothing was started. */
static void stay(struct departure d)
{
	if (!refit.image) {
		return;
	}
	if (leaves(d.replaces)) {
		refit_add(&refit.image->departed, (uint64_t)-1);
	}
	if (d.expected) {
		refit_add(&refit.image->execs, (uint64_t)-1);
	}
	if (d.unreached) {
		refit_add(&d.unreached->count, (uint64_t)-1);
	}
}

/* Fills room and env for a departure to target. CALL is made with `use` as its
 * environment; a macro, because the room is the stack of the calling function.
 * The target is not looked at where there is no policy to follow. */
#define WITH_ENVIRONMENT(LOOK, ENVP, REPLACES, CALL)                           \
	if (!refit.policy) {                                                   \
		char *const *use = (ENVP);                                     \
		return CALL;                                                   \
	}                                                                      \
	struct refit_target target;                                            \
	LOOK;                                                                  \
	uint32_t reason = reason_not_reached(&target);                         \
	struct environment env;                                                \
	env.entries = (ENVP);                                                  \
	/* Threads may have small stacks. */                                   \
	if (count_entries(ENVP) <= ENVIRONMENT_MAX) {                          \
		char **room = alloca((count_entries(ENVP) + added_entries()) * \
				     sizeof *room);                            \
		compose(&env, room, (ENVP), reason, target.kind);              \
	}                                                                      \
	char *const *use = env.entries;                                        \
	struct departure departure = depart(&target, reason, use, (REPLACES)); \
	int result = CALL;                                                     \
	if ((REPLACES) || result != 0) {                                       \
		stay(departure);                                               \
	}                                                                      \
	return result

/* What execvp would run: the first executable file of that name in PATH. */
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
	char name[4096];
	size_t length = prim_length(file);
	while (*path || *file) {
		size_t n = 0;
		while (path[n] && path[n] != ':') {
			n++;
		}
		if (n + length + 2 <= sizeof name) {
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

static int raw_execve(const char *path, char *const *argv, char *const *envp)
{
	return (int)prim_result(prim_syscall(SYS_execve, path, argv, envp, 0));
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	WITH_ENVIRONMENT(refit_target_look(AT_FDCWD, path, &target), envp, 1,
			 refit.next.execve
				 ? refit.next.execve(path, argv, use)
				 : raw_execve(path, argv, use));
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	if (!NEXT(execvpe)) {
		errno = ENOSYS;
		return -1;
	}
	WITH_ENVIRONMENT(look_in_path(file, &target), envp, 1,
			 refit.next.execvpe(file, argv, use));
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

/* Another preload (fakechroot) may search in places of its own: then it does,
 * with the environment as it is, and comes to its own execve. */
EXPORT int execvp(const char *file, char *const argv[])
{
	if (refit.own_execvp) {
		return refit.next.execvp(file, argv);
	}
	return execvpe(file, argv, environ);
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
	if (!NEXT(fexecve)) {
		errno = ENOSYS;
		return -1;
	}
	WITH_ENVIRONMENT(refit_target_look_fd(fd, &target), envp, 1,
			 refit.next.fexecve(fd, argv, use));
}

EXPORT int execveat(int dirfd, const char *path, char *const argv[],
		    char *const envp[], int flags)
{
	int by_fd = (flags & AT_EMPTY_PATH) && !*path;
	WITH_ENVIRONMENT(by_fd ? refit_target_look_fd(dirfd, &target)
			       : refit_target_look(dirfd, path, &target),
			 envp, 1,
			 (int)prim_result(prim_syscall6(
				 SYS_execveat, dirfd, (long)path, (long)argv,
				 (long)use, flags, 0)));
}

EXPORT int posix_spawn(pid_t *pid, const char *path,
		       const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const argv[],
		       char *const envp[])
{
	if (!NEXT(posix_spawn)) {
		return ENOSYS;
	}
	WITH_ENVIRONMENT(refit_target_look(AT_FDCWD, path, &target), envp, 0,
			 refit.next.posix_spawn(pid, path, actions, attributes,
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
	WITH_ENVIRONMENT(look_in_path(file, &target), envp, 0,
			 refit.next.posix_spawnp(pid, file, actions, attributes,
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
