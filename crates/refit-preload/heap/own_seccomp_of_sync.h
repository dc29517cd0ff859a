/* Of the sync library, which comes first; absent where it was not preloaded. */
#ifndef REFIT_OWN_SECCOMP_OF_SYNC_H
#define REFIT_OWN_SECCOMP_OF_SYNC_H

/* Whether the program installed or inherited a seccomp filter: beneath it no
 * system call is made that the program did not make. */
int refit_sync_has_own_seccomp(void) __attribute__((weak));

static inline int refit_has_own_seccomp(void)
{
	return refit_sync_has_own_seccomp && refit_sync_has_own_seccomp();
}

#endif
