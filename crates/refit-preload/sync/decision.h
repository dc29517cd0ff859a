/* What becomes of a call: decided once for the image where no rule is about
 * paths, and otherwise for each call by the file that it is about. */
#ifndef REFIT_DECISION_H
#define REFIT_DECISION_H

#include "state.h"

/* The longest path that is looked at; a longer one counts as unknown. Small,
 * because a sync may be made on a signal handler's little stack. */
#define REFIT_PATH 1024

/* From the policy, for the executable of this name. */
void refit_decide_for_image(const char *exe);

enum refit_decision refit_decide_by_file(int fd);

/* Of a call about no single descriptor: msync, sync, syncfs. */
enum refit_decision refit_decide_for_all(void);

static inline enum refit_decision refit_decide(int fd)
{
	return LIKELY(!refit.by_path) ? refit.decision : refit_decide_by_file(fd);
}

/* Whether O_DIRECT is taken from the file. */
int refit_strips_direct(int fd);

/* A filter lies beneath, and refit counts what passes it without a cookie. */
static inline int refit_notified(void)
{
	return refit.policy && refit.policy->flags & REFIT_POLICY_NOTIFIED;
}

/* Writes n in decimal and returns the end; no NUL. */
char *refit_put_number(char *to, unsigned n);

/* The path of an open file as refit sees it, NUL-terminated: -1 when nobody can
 * tell from here (another root, no /proc), 0 when it is no file with a path. */
long refit_path_of(int fd, char path[REFIT_PATH]);

#endif
