#define _GNU_SOURCE
#include "decision.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "pattern.h"

/* Rules whose exe is ours, by bit. */
static uint64_t ours;

static uint32_t rule_count(void)
{
	uint32_t count = refit.policy->rule_count;
	return count < REFIT_RULES ? count : REFIT_RULES;
}

static const char *pattern_of(const struct refit_rule *rule)
{
	return rule->path < REFIT_TEXT ? refit.policy->text + rule->path : "";
}

/* Said at the end: a scope that matched nothing was probably mistyped. */
static void note_match(uint32_t i)
{
	uint64_t bit = 1ull << i;
	uint64_t *matched = refit.image ? &refit.image->matched : &refit.matched;
	if (!(__atomic_load_n(matched, __ATOMIC_RELAXED) & bit)) {
		__atomic_fetch_or(matched, bit, __ATOMIC_RELAXED);
	}
}

/* Whether the knob is swapped for this path; NULL: as far as no path matters.
 * As in gitignore, the last match wins. */
static int swapped(uint32_t knob, const char *path)
{
	for (uint32_t i = rule_count(); i-- > 0;) {
		const struct refit_rule *rule = &refit.policy->rules[i];
		if (rule->knob != knob || !(ours >> i & 1) ||
		    (rule->path && (!path || !refit_pattern_matches(
						     pattern_of(rule), path)))) {
			continue;
		}
		note_match(i);
		return !rule->on;
	}
	return 0;
}

/* Whether a rule about paths can decide, before one that is about everything. */
static int has_paths(uint32_t knob)
{
	for (uint32_t i = rule_count(); i-- > 0;) {
		const struct refit_rule *rule = &refit.policy->rules[i];
		if (rule->knob == knob && (ours >> i & 1)) {
			return rule->path != 0;
		}
	}
	return 0;
}

/* Without the event ring the queue would be this image's alone. */
static enum refit_decision real_or_disk(int emulated)
{
	if (!emulated) {
		return REFIT_DECISION_REAL;
	}
	return !refit.event_ring && refit_notified() ? REFIT_DECISION_ASK : REFIT_DECISION_DISK;
}

void refit_decide_for_image(const char *exe)
{
	for (uint32_t i = 0; i < rule_count(); i++) {
		const char *wanted = refit.policy->rules[i].exe;
		if (!wanted[0] || prim_equal(wanted, exe)) {
			ours |= 1ull << i;
			if (wanted[0] && !refit.policy->rules[i].path) {
				note_match(i);
			}
		}
	}
	refit.by_path = has_paths(REFIT_KNOB_SYNC) || has_paths(REFIT_KNOB_DISK);
	refit.direct_by_path = has_paths(REFIT_KNOB_ODIRECT);
	refit.odirect_off = swapped(REFIT_KNOB_ODIRECT, NULL);
	refit.decision = swapped(REFIT_KNOB_SYNC, NULL)
			    ? REFIT_DECISION_OFF
			    : real_or_disk(swapped(REFIT_KNOB_DISK, NULL));
}

/* Elsewhere the same words name another file (chroot(2), pivot_root(2)). */
static int is_our_root(void)
{
	struct stat st;
	return prim_syscall(SYS_newfstatat, AT_FDCWD, "/", &st, 0) == 0 &&
	       st.st_dev == refit.policy->root_dev &&
	       st.st_ino == refit.policy->root_ino;
}

char *refit_put_number(char *to, unsigned n)
{
	char digits[12];
	int count = 0;
	do {
		digits[count++] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	while (count) {
		*to++ = digits[--count];
	}
	return to;
}

/* The kernel writes " (deleted)" behind the path of a file without a name
 * (proc_pid_fd(5)); a file may also be called that. */
static long without_deleted(int fd, char *path, long length)
{
	static const char mark[] = " (deleted)";
	const long behind = length - (long)(sizeof mark - 1);
	struct stat st;
	if (behind > 0 && prim_equal(path + behind, mark) &&
	    prim_syscall(SYS_fstat, fd, &st, 0, 0) == 0 && st.st_nlink == 0) {
		path[behind] = '\0';
		return behind;
	}
	return length;
}

long refit_path_of(int fd, char path[REFIT_PATH])
{
	char link[32];
	if (fd < 0) {
		path[0] = '\0';
		return 0;
	}
	if (!refit.policy || refit.own_seccomp || !is_our_root()) {
		return -1;
	}
	*refit_put_number(prim_copy(link, "/proc/self/fd/", sizeof link),
		    (unsigned)fd) = '\0';
	long length = prim_syscall(SYS_readlinkat, AT_FDCWD, link, path,
				   REFIT_PATH);
	if (length < 0 || length >= REFIT_PATH) {
		return -1;
	}
	path[length] = '\0';
	if (path[0] != '/') { /* "pipe:[1234]" */
		path[0] = '\0';
		return 0;
	}
	return without_deleted(fd, path, length);
}

enum refit_decision refit_decide_by_file(int fd)
{
	char path[REFIT_PATH];
	long length = refit_path_of(fd, path);
	if (length >= 0) {
		return swapped(REFIT_KNOB_SYNC, path)
			       ? REFIT_DECISION_OFF
			       : real_or_disk(swapped(REFIT_KNOB_DISK, path));
	}
	if (refit_notified()) {
		return REFIT_DECISION_ASK;
	}
	if (refit.image) {
		refit_add(&refit.image->path_unknown, 1);
	}
	return real_or_disk(swapped(REFIT_KNOB_DISK, NULL));
}

enum refit_decision refit_decide_for_all(void)
{
	if (LIKELY(!refit.by_path)) {
		return refit.decision;
	}
	/* What it covers may lie inside and outside of the scope. */
	return refit_notified() ? REFIT_DECISION_ASK
			  : real_or_disk(swapped(REFIT_KNOB_DISK, NULL));
}

int refit_strips_direct(int fd)
{
	char path[REFIT_PATH];
	if (LIKELY(!refit.direct_by_path)) {
		return refit.odirect_off;
	}
	return refit_path_of(fd, path) > 0 && swapped(REFIT_KNOB_ODIRECT, path);
}
