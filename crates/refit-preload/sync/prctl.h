/* By prctl(2) and seccomp(2) a program installs a seccomp filter, and gives up
 * the right to one. */
#ifndef REFIT_PRCTL_H
#define REFIT_PRCTL_H

/* seccomp(2) and prctl(2), by number: -errno on failure. */
long refit_seccomp(long nr, long a, long b, long c, long d, long e);

#endif
