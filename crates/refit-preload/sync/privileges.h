/* Before a process gives up the right to a filter. */
#ifndef REFIT_PRIVILEGES_H
#define REFIT_PRIVILEGES_H

/* Before prctl(2). */
void refit_before_prctl(long option, unsigned long argument);

/* Before setuid, setreuid, setresuid or capset by number. */
void refit_before_by_number(long nr, long a, long b);

#endif
