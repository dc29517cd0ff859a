/* Maps what the program shares with refit. Each returns NULL when it cannot be
 * had: then the program goes on without. */
#ifndef REFIT_SESSION_PAGE_H
#define REFIT_SESSION_PAGE_H

#include "session.h"
#include "state.h"

const struct refit_policy *refit_map_policy(const char *session);

/* Whether "/" is the directory that it is to refit. With refit_map_policy's, its
 * calls are those with which ld.so maps a file: see own_seccomp.h. */
int refit_starts_in_our_root(void);

struct refit_image *refit_map_image(const char *session);

/* By its SysV id. A process in another IPC namespace, or of another user, has
 * none. */
struct refit_event_ring *refit_map_event_ring(int id);

struct refit_mark *refit_map_mark(void);

#endif
