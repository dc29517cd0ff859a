/* A seccomp filter of the program's own. It may kill for a call that it does
 * not know, so from then on we make no system call that the program did not
 * make: no probe, no look at a path or a file that is exec'ed, no question for
 * our pid, no time. The functions that look around ask refit.own_seccomp first.
 *
 * Noticed are prctl(2) and seccomp(2) through the C library, also by number
 * with syscall(3), and a filter that was inherited: at the start, or, in a
 * program of which nothing is counted and of which nothing else has to be asked,
 * before the first call that depends on it. To ask takes 0.04 ms, and most short
 * programs make no such call. Not noticed are a filter that the program installs
 * by system call instructions of its own, and an inherited one where /proc is not
 * mounted. A call that another thread is in the middle of while a filter is
 * installed for all threads (SECCOMP_FILTER_FLAG_TSYNC) is not stopped. */
#ifndef REFIT_OWN_SECCOMP_H
#define REFIT_OWN_SECCOMP_H

#include "state.h"

/* Before a call that installs one: so no thread probes beneath it. */
void refit_begin_own_seccomp(void);

/* After it. Libraries also call with a bad address, only to see what the kernel
 * has. */
void refit_end_own_seccomp(int failed);

/* Looks, where nobody did: before the first call that depends on it. */
__attribute__((cold)) int refit_look_for_own_seccomp(void);

/* Whether the program has a seccomp filter of its own. */
static inline int refit_beneath_own_seccomp(void)
{
	return UNLIKELY(refit.own_seccomp) && refit_look_for_own_seccomp();
}

/* Whether the kernel has refit's filter (filter.h) for the calling task, however
 * it got there; it is not one that the program installed. */
int refit_has_filter(void);

/* Whether this image started beneath more filters than refit counted when it
 * started the program. Reads /proc by the calls with which ld.so reads a
 * library, as these the filter has just allowed. */
int refit_inherits_seccomp(const char *session);

/* Beneath a filter that answers every sync with 0 (systemd-nspawn
 * --suppress-sync) a probe says nothing. */
int refit_probes_are_false(void);

/* The Y of glibc 2.Y; 0: another C library. */
unsigned refit_glibc(void);

/* Whether refit_inherits_seccomp can be replaced by the following one: up to it
 * only calls may be made that ld.so has made. */
int refit_may_look_later(void);

/* Has refit_beneath_own_seccomp look when it is asked. Call it after
 * everything else is known. */
void refit_look_later(void);

#endif
