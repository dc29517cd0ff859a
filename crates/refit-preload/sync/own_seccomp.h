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

/* seccomp(2) and prctl(2), by number: -errno on failure. */
long refit_seccomp(long nr, long a, long b, long c, long d, long e);

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

/* Has refit_beneath_own_seccomp (state.h) look when it is asked. Call it after
 * everything else is known. */
void refit_look_later(void);

#endif
