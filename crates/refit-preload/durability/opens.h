/* Tells an open that may change a file. */
#ifndef REFIT_OPENS_H
#define REFIT_OPENS_H

#include "events.h"

/* Whether an open with these flags may write to a file, or make one. */
int refit_may_change(int flags);

/* The file that it finds; with flags that neither make nor truncate one, any. */
struct refit_file refit_before_open(struct refit_name name, int flags);

/* The open has succeeded; `before`: what refit_before_open returned. */
void refit_tell_open(int fd, struct refit_name name, int flags,
		     struct refit_file before);

#endif
