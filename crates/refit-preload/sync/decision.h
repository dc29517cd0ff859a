/* What becomes of a call: decided once for the image where no rule is about
 * paths, and otherwise for each call by the file that it is about. Once the
 * program has a seccomp filter of its own, nothing is swapped any more. */
#ifndef REFIT_DECISION_H
#define REFIT_DECISION_H

#include "own_seccomp.h"

/* Whether a rule of the policy is for some executables only. */
int refit_has_executables(void);

/* From the policy, for the executable of this name. */
void refit_decide_for_image(const char *exe);

/* By the file's path. */
enum refit_decision refit_decide_by_file(int fd);

/* Of a call that we must not look into: it is the kernel's, or the guardian's
 * where there is one. Neither takes a further call of this process. */
static inline enum refit_decision refit_decide_unseen(void)
{
	return refit_notified() ? REFIT_DECISION_ASK : REFIT_DECISION_REAL;
}

static inline enum refit_decision refit_decide(int fd)
{
	if (refit_beneath_own_seccomp()) {
		return refit_decide_unseen();
	}
	return LIKELY(!refit.by_path) ? refit.decision
				      : refit_decide_by_file(fd);
}

/* Of a call about no single descriptor: msync, sync, syncfs. */
enum refit_decision refit_decide_for_all(void);

/* Whether sync is off for every file. */
static inline int refit_all_off(void)
{
	return !refit.by_path && refit.decision == REFIT_DECISION_OFF &&
	       !refit_beneath_own_seccomp();
}

/* Whether O_DIRECT is taken from any file. */
static inline int refit_strips_some_direct(void)
{
	return (refit.odirect_off || refit.direct_by_path) &&
	       !refit_beneath_own_seccomp();
}

/* Whether O_DIRECT is taken from this one. */
int refit_strips_direct(int fd);

#endif
