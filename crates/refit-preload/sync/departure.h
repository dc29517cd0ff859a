/* What is counted when a program is started: whether the preload will reach it,
 * and if not, its name and the reason. */
#ifndef REFIT_DEPARTURE_H
#define REFIT_DEPARTURE_H

#include "session.h"
#include "target.h"

struct refit_departure {
	struct refit_unreached *unreached;
	int expected;
	int replaces; /* exec: this process ends here; spawn: it goes on */
};

/* Why the target will not be reached, or REFIT_REASON_REACHED. */
uint32_t refit_reason_not_reached(const struct refit_target *target);

/* Before the exec or spawn. */
struct refit_departure refit_depart(const struct refit_target *target,
				    uint32_t reason, char *const *envp,
				    int replaces);

/* It failed: takes back what was counted. */
void refit_stay(struct refit_departure d);

#endif
