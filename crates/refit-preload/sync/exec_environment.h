/* The environment of a program that is exec'ed. */
#ifndef REFIT_EXEC_ENVIRONMENT_H
#define REFIT_EXEC_ENVIRONMENT_H

#include <stddef.h>
#include <stdint.h>

struct refit_environment {
	char *const *entries; /* what the program will get */
	/* Room for our own two entries, of the caller's stack. */
	size_t preload_size, session_size;
	char *preload, *session;
};

/* How many entries the result may have. */
size_t refit_environment_room(char *const *envp);

/* The sizes of the room for our own two entries: as much as they take, since a
 * thread's stack may be small. */
void refit_environment_sizes(struct refit_environment *out, char *const *envp);

/* Puts refit's own variables back where the caller cleared them, or takes our
 * libraries out of LD_PRELOAD where the target (its reason and kind, target.h)
 * would complain about them. Sets out->entries, to room if anything changes. */
void refit_compose_environment(struct refit_environment *out, char **room,
			       char *const *envp, uint32_t reason,
			       uint32_t kind);

#endif
