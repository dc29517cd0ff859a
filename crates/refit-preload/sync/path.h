/* The path of an open file, as refit outside sees it. */
#ifndef REFIT_PATH_H
#define REFIT_PATH_H

#include "fd_link.h"

/* The longest path that is looked at; a longer one counts as unknown. Small,
 * because a sync may be made on a signal handler's little stack. */
#define REFIT_PATH 1024

/* The path of an open file, NUL-terminated, and its length. 0: it is not a
 * file with a path. -1: it cannot be known here (another root, no /proc, or a
 * seccomp filter of the program's own). */
long refit_path_of(int fd, char path[REFIT_PATH]);

#endif
