/* system(3) and popen(3) start a shell inside the C library, with the environment
 * as it is: what the caller cleared is not put back. Where the preload does not
 * reach the shell for that, or for another reason, a filter goes beneath. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "departure.h"
#include "next.h"
#include "own_seccomp.h"
#include "target.h"

#define SHELL "/bin/sh" /* _PATH_BSHELL of both C libraries */

extern char **environ;

static struct refit_departure about_to_start(void)
{
	struct refit_target target;
	if (!refit.policy) {
		return (struct refit_departure){0};
	}
	if (refit_beneath_own_seccomp()) {
		refit_target_only_name(SHELL, &target);
	} else {
		refit_target_look(AT_FDCWD, SHELL, &target);
	}
	return refit_depart(&target, refit_reason_not_reached(&target), environ,
			    0);
}

static void did_not_start(struct refit_departure departure)
{
	if (refit.policy) {
		refit_stay(departure);
	}
}

EXPORT int system(const char *command)
{
	if (!NEXT(system)) {
		errno = ENOSYS;
		return -1;
	}
	if (!command) { /* asks whether there is a shell */
		return refit_next.system(command);
	}
	struct refit_departure departure = about_to_start();
	int status = refit_next.system(command);
	if (status == -1) {
		did_not_start(departure);
	}
	return status;
}

EXPORT FILE *popen(const char *command, const char *type)
{
	if (!NEXT(popen)) {
		errno = ENOSYS;
		return NULL;
	}
	struct refit_departure departure = about_to_start();
	FILE *stream = refit_next.popen(command, type);
	if (!stream) {
		did_not_start(departure);
	}
	return stream;
}
