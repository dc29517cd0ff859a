#include "decision.h"

#include "path.h"
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

/* Reported at the end: a scope that matched nothing was probably mistyped. */
static void note_match(uint32_t i)
{
	uint64_t bit = 1ull << i;
	uint64_t *matched = refit.image ? &refit.image->matched : &refit.matched;
	if (!(__atomic_load_n(matched, __ATOMIC_RELAXED) & bit)) {
		__atomic_fetch_or(matched, bit, __ATOMIC_RELAXED);
	}
}

/* Whether the knob is swapped for this path; NULL: by the rules without a path
 * alone. As in gitignore, the last match wins. */
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

/* Whether a rule about paths comes after the last one about every path. */
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

/* Without the event ring the disk's queue would be this image's alone. */
static enum refit_decision real_or_disk(int emulated)
{
	if (!emulated) {
		return REFIT_DECISION_REAL;
	}
	return !refit.event_ring && refit_notified() ? REFIT_DECISION_ASK
						     : REFIT_DECISION_DISK;
}

int refit_has_executables(void)
{
	for (uint32_t i = 0; i < rule_count(); i++) {
		if (refit.policy->rules[i].exe[0]) {
			return 1;
		}
	}
	return 0;
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
	if (refit_beneath_own_seccomp()) {
		return refit_decide_unseen();
	}
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
