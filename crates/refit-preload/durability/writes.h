/* Tells a write, whoever made it. */
#ifndef REFIT_WRITES_H
#define REFIT_WRITES_H

/* Of a regular file, or an acknowledgement; `flags` as those of an event. */
void refit_tell_write(int fd, unsigned flags);

#endif
