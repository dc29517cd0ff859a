/* The link in /proc that leads to an open file. */
#ifndef REFIT_FD_LINK_H
#define REFIT_FD_LINK_H

/* Room for "/proc/self/fd/" and a number. */
#define REFIT_FD_LINK 32

/* Writes its name. */
void refit_fd_link(int fd, char link[REFIT_FD_LINK]);

#endif
