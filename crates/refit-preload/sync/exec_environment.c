#include "exec_environment.h"

#include "state.h"
#include "target.h"

static int is_ours(const char *entry, size_t size)
{
	const char *lists[2] = {refit_policy_text(refit.policy->library),
				refit_policy_text(refit.policy->preloads)};
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

/* LD_PRELOAD=OURS:THEIRS where the target accepts our libraries,
 * LD_PRELOAD=THEIRS where it does not. The allocator that refit adds is
 * built for glibc, so a musl program gets the sync library alone. Returns 0
 * when the result has no entry, -1 when it would not fit. */
static int compose_preload(struct refit_environment *out, const char *theirs,
			   int take, uint32_t kind)
{
	char *begin = prim_copy(out->preload, "LD_PRELOAD=", out->preload_size);
	const char *end = out->preload + out->preload_size;
	char *at = begin;
	*at = '\0';
	if (take) {
		const char *library = refit_policy_text(refit.policy->library);
		const char *more = refit_policy_text(refit.policy->preloads);
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

/* An LD_PRELOAD beyond this many bytes is left as it is. */
enum { PRELOAD_MOST = 4096 };

void refit_environment_sizes(struct refit_environment *out, char *const *envp)
{
	const char *theirs = prim_env(envp, "LD_PRELOAD=");
	size_t size = sizeof "LD_PRELOAD=" + 2 +
		      prim_length(refit_policy_text(refit.policy->library)) +
		      prim_length(refit_policy_text(refit.policy->preloads)) +
		      (theirs ? prim_length(theirs) + 1 : 0);
	out->preload_size = size < PRELOAD_MOST ? size : PRELOAD_MOST;
	out->session_size = sizeof "REFIT_SESSION=" +
			    prim_length(refit_policy_text(refit.policy->session));
}

size_t refit_environment_room(char *const *envp)
{
	/* The preload, the session, the final NULL, and what was put back. */
	size_t n = 3;
	for (const char *v = refit_policy_text(refit.policy->env); *v;
	     v += prim_length(v) + 1) {
		n++;
	}
	while (envp && *envp++) {
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

void refit_compose_environment(struct refit_environment *out, char **room,
			       char *const *envp, uint32_t reason,
			       uint32_t kind)
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
	const char *library_entry = prim_after(out->preload, "LD_PRELOAD=");
	const char *session = prim_env(envp, "REFIT_SESSION=");
	const char *ours = refit_policy_text(refit.policy->session);
	int session_right = session && prim_equal(session, ours);
	int preload_right = has ? theirs && prim_equal(theirs, library_entry)
				: !theirs;
	size_t n = 0;
	if (has && !preload_right) {
		room[n++] = out->preload;
	}
	if (!complains && !session_right) {
		char *end = prim_copy(out->session, "REFIT_SESSION=",
				      out->session_size);
		prim_copy(end, ours, out->session_size - 14);
		room[n++] = out->session;
	}
	const char *v = refit_policy_text(refit.policy->env);
	for (; !complains && *v; v += prim_length(v) + 1) {
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
