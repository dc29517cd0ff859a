#include "departure.h"

#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "filter.h"
#include "own_seccomp.h"

#define ST_NOEXEC_FLAG 0x8 /* statfs(2), ST_NOEXEC */

/* ld.so of the new program opens our library, and the library the session, in
 * the root that the caller has now. */
static int visible_here(void)
{
	struct statfs fs;
	char path[512];
	/* All of ours lie in one directory. */
	prim_copy(path, refit_policy_text(refit.policy->library), sizeof path);
	char *end;
	for (end = path; *end && *end != ':'; end++) {
	}
	*end = '\0';
	if (prim_syscall(SYS_statfs, path, &fs, 0, 0) < 0 ||
	    (fs.f_flags & ST_NOEXEC_FLAG)) {
		return 0;
	}
	end = prim_copy(path, refit_policy_text(refit.policy->session),
			      sizeof path - 8);
	prim_copy(end, "/policy", 8);
	return prim_syscall(SYS_faccessat, AT_FDCWD, path, R_OK, 0) == 0;
}

uint32_t refit_reason_not_reached(const struct refit_target *target)
{
	if (target->reason != REFIT_REASON_REACHED) {
		return target->reason;
	}
	if (refit_beneath_own_seccomp()) {
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

/* Of a long path the end is kept: it tells more than the beginning. */
static void copy_name(char *to, const char *path, size_t size)
{
	size_t n = prim_length(path);
	prim_copy(to, n < size ? path : path + (n - size + 1), size);
}

/* An open-addressing table in the image. An entry that another process is
 * writing (it may have died meanwhile) is skipped. */
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
		if (state == REFIT_ENTRY_FREE && __atomic_compare_exchange_n(
					  &u->state, &state,
					  REFIT_ENTRY_CLAIMED, 0,
					  __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
			u->reason = reason;
			prim_copy(u->name, name, sizeof u->name);
			__atomic_store_n(&u->state, REFIT_ENTRY_VALID,
					  __ATOMIC_RELEASE);
			state = REFIT_ENTRY_VALID;
		}
		if (state == REFIT_ENTRY_VALID && u->reason == reason &&
		    prim_equal(u->name, name)) {
			refit_add(&u->count, 1);
			return u;
		}
	}
	__atomic_fetch_add(&image->unreached_lost, 1, __ATOMIC_RELAXED);
	return NULL;
}

static int reached(uint32_t reason, char *const *envp)
{
	if (reason != REFIT_REASON_REACHED) {
		return 0;
	}
	const char *preload = prim_env(envp, "LD_PRELOAD=");
	const char *library = refit_policy_text(refit.policy->library);
	for (; preload && *preload; preload++) {
		if (prim_after(preload, library)) {
			return 1;
		}
	}
	return 0;
}

/* Whether this process was counted when it was forked, and will be counted
 * again as what it becomes. A vfork child was not: the mark is its parent's.
 * Beneath a filter of the program's own we cannot ask for the pid, and count
 * a vfork child of a forked process as that process. */
static int leaves(int replaces)
{
	return replaces && refit.mark->slot && refit.mark->forked &&
	       (refit_beneath_own_seccomp() ||
		refit.mark->pid ==
			(uint32_t)prim_syscall(SYS_getpid, 0, 0, 0, 0));
}

/* For a process that dropped its privileges: from now on refit reads that
 * user's image files too. */
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

/* Of a file of an unknown kind another program may be the interpreter
 * (binfmt_misc). What cannot be executed would leave the caller a filter for
 * nothing. */
static int needs_filter(const struct refit_target *target, int is_reached)
{
	return target->executable &&
	       (!is_reached || target->own_calls ||
		target->kind == REFIT_TARGET_UNKNOWN);
}

struct refit_departure refit_depart(const struct refit_target *target,
				    uint32_t reason, char *const *envp,
				    int replaces)
{
	struct refit_departure d = {NULL, 0, replaces};
	int is_reached = reached(reason, envp);
	uint32_t filtered =
		needs_filter(target, is_reached) && refit_put_filter()
			? REFIT_UNREACHED_FILTERED
			: 0;
	if (!refit.image) {
		return d;
	}
	if (leaves(replaces)) {
		refit_add(&refit.image->departed, 1);
	}
	if (is_reached) {
		d.expected = 1;
		refit_add(&refit.image->execs, 1);
		note_user();
	} else {
		if (reason == REFIT_REASON_REACHED) {
			reason = REFIT_REASON_ENVIRONMENT;
		}
		d.unreached = note_unreached(target->path, reason | filtered);
	}
	return d;
}

void refit_stay(struct refit_departure d)
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
