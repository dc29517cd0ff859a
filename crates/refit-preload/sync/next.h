/* The next functions: for each name that we export, the definition that the
 * program would have called without us, in another preload or the C library.
 *
 * All are looked up in the constructor. After that there is no dlsym inside an
 * intercepted call, which may come from a vfork child or a signal handler. The
 * one exception are functions of libraries that a program may load later.
 */
#ifndef REFIT_NEXT_H
#define REFIT_NEXT_H

#include <stdint.h>
#include <sys/types.h>

#include "prim.h"

struct aiocb;
struct iovec;

#define REFIT_NEXT(X)                                                          \
	X(int, open, (const char *, int, ...))                                 \
	X(int, open64, (const char *, int, ...))                               \
	X(int, openat, (int, const char *, int, ...))                          \
	X(int, openat64, (int, const char *, int, ...))                        \
	X(int, __open_2, (const char *, int))                                  \
	X(int, __open64_2, (const char *, int))                                \
	X(int, __openat_2, (int, const char *, int))                           \
	X(int, __openat64_2, (int, const char *, int))                         \
	X(int, mkostemp, (char *, int))                                        \
	X(int, mkostemp64, (char *, int))                                      \
	X(int, mkostemps, (char *, int, int))                                  \
	X(int, mkostemps64, (char *, int, int))                                \
	X(int, fcntl, (int, int, ...))                                         \
	X(int, fcntl64, (int, int, ...))                                       \
	X(ssize_t, pwritev2, (int, const struct iovec *, int, off_t, int))     \
	X(ssize_t, pwritev64v2, (int, const struct iovec *, int, off_t, int))  \
	X(void *, mmap, (void *, size_t, int, int, int, off_t))                \
	X(void *, mmap64, (void *, size_t, int, int, int, off_t))              \
	X(int, munmap, (void *, size_t))                                       \
	X(int, chroot, (const char *))                                         \
	X(int, prctl, (int, ...))                                              \
	X(int, setuid, (uid_t))                                                \
	X(int, seteuid, (uid_t))                                               \
	X(int, setreuid, (uid_t, uid_t))                                       \
	X(int, setresuid, (uid_t, uid_t, uid_t))                               \
	X(int, capset, (void *, const void *))                                 \
	X(int, system, (const char *))                                         \
	X(void *, popen, (const char *, const char *))                         \
	X(int, execve, (const char *, char *const *, char *const *))           \
	X(int, execvp, (const char *, char *const *))                          \
	X(int, execvpe, (const char *, char *const *, char *const *))          \
	X(int, fexecve, (int, char *const *, char *const *))                   \
	X(int, posix_spawn,                                                    \
	  (pid_t *, const char *, const void *, const void *, char *const *,   \
	   char *const *))                                                     \
	X(int, posix_spawnp,                                                   \
	  (pid_t *, const char *, const void *, const void *, char *const *,   \
	   char *const *))

/* Of librt (before glibc 2.34), which may come with a dlopen. */
#define REFIT_NEXT_AIO(X)                                                      \
	X(int, aio_fsync, (int, struct aiocb *))                               \
	X(int, aio_fsync64, (int, struct aiocb *))                             \
	X(int, lio_listio, (int, struct aiocb *const *, int, void *))          \
	X(int, lio_listio64, (int, struct aiocb *const *, int, void *))

/* Of liburing, the same. io_uring_submit is in all its versions. */
#define REFIT_NEXT_URING(X)                                                    \
	X(int, io_uring_submit, (void *))                                      \
	X(int, io_uring_queue_init_params, (unsigned, void *, void *))         \
	X(int, io_uring_queue_init_mem,                                        \
	  (unsigned, void *, void *, void *, size_t))                          \
	X(int, io_uring_submit_and_wait, (void *, unsigned))                   \
	X(int, io_uring_submit_and_wait_timeout,                               \
	  (void *, void *, unsigned, void *, void *))                          \
	X(int, io_uring_submit_and_get_events, (void *))

/* NULL before the constructor, and where nobody defines such a function. */
struct refit_next {
#define X(type, name, args) type(*name) args;
	REFIT_NEXT(X)
	REFIT_NEXT_AIO(X)
	REFIT_NEXT_URING(X)
#undef X
	int foreign_execvp; /* another preload has an execvp and no execvpe */
};

extern struct refit_next refit_next;

/* Looks all of them up, unless that was done before. */
void refit_find_next(void);

/* For functions without a system call of their own to fall back on: found now
 * if a library's constructor calls them before ours ran. */
#define NEXT(name)                                                             \
	(LIKELY(refit_next.name != NULL) ? refit_next.name                     \
					 : (refit_find_next(), refit_next.name))

/* Looks up those of AIO and liburing that are still missing. */
void refit_find_later(void);

/* Declares found: the next function of that name, or NULL. What was found once
 * is not looked up again. liburing's are all found when a ring is set up, which
 * neither a vfork child nor a signal handler does. */
#define NEXT_FOR_CALLER(found, name)                                           \
	__typeof__(refit_next.name) found = refit_next.name;                   \
	if (UNLIKELY(!found)) {                                                \
		refit_find_later();                                            \
		found = refit_next.name;                                       \
	}

#endif
