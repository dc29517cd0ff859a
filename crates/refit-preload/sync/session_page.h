/* Maps what the program shares with refit. Each returns NULL when it cannot be
 * had: then the program goes on without. */
#ifndef REFIT_SESSION_PAGE_H
#define REFIT_SESSION_PAGE_H

#include "session.h"
#include "state.h"

const struct refit_policy *refit_map_policy(const char *session);

struct refit_image *refit_map_image(const char *session);

/* By its SysV id. A process in another IPC namespace, or of another user, has
 * none. */
struct refit_event_ring *refit_map_event_ring(int id);

struct refit_mark *refit_map_mark(void);

#endif
