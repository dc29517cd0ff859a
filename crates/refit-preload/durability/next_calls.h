/* The next functions: for each name that the library exports, the definition that the
 * program would have called without it, mostly the sync library's or the C library's.
 * Looked up once, before the first call. */
#ifndef REFIT_NEXT_CALLS_H
#define REFIT_NEXT_CALLS_H

#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <utime.h>

#include "prim.h"

#undef open64
#undef openat64
#undef creat64
#undef fopen64
#undef freopen64
#undef mkstemp64
#undef mkstemps64
#undef mkostemp64
#undef mkostemps64
#undef pwrite64
#undef pwritev64
#undef pwritev64v2
#undef sendfile64
#undef ftruncate64
#undef truncate64
#undef fallocate64
#undef posix_fallocate64
#undef mmap64

struct mmsghdr;

#define REFIT_NEXT_CALLS(X)                                                    \
	X(int, open, (const char *, int, ...))                                 \
	X(int, open64, (const char *, int, ...))                               \
	X(int, openat, (int, const char *, int, ...))                          \
	X(int, openat64, (int, const char *, int, ...))                        \
	X(int, __open_2, (const char *, int))                                  \
	X(int, __open64_2, (const char *, int))                                \
	X(int, __openat_2, (int, const char *, int))                           \
	X(int, __openat64_2, (int, const char *, int))                         \
	X(int, creat, (const char *, mode_t))                                  \
	X(int, creat64, (const char *, mode_t))                                \
	X(int, mkstemp, (char *))                                              \
	X(int, mkstemp64, (char *))                                            \
	X(int, mkstemps, (char *, int))                                        \
	X(int, mkstemps64, (char *, int))                                      \
	X(int, mkostemp, (char *, int))                                        \
	X(int, mkostemp64, (char *, int))                                      \
	X(int, mkostemps, (char *, int, int))                                  \
	X(int, mkostemps64, (char *, int, int))                                \
	X(FILE *, fopen, (const char *, const char *))                         \
	X(FILE *, fopen64, (const char *, const char *))                       \
	X(FILE *, freopen, (const char *, const char *, FILE *))               \
	X(FILE *, freopen64, (const char *, const char *, FILE *))             \
	X(FILE *, fdopen, (int, const char *))                                 \
	X(int, fclose, (FILE *))                                               \
	X(int, fflush, (FILE *))                                               \
	X(int, fflush_unlocked, (FILE *))                                      \
	X(int, close, (int))                                                   \
	X(int, close_range, (unsigned, unsigned, int))                         \
	X(void, closefrom, (int))                                              \
	X(int, dup, (int))                                                     \
	X(int, dup2, (int, int))                                               \
	X(int, dup3, (int, int, int))                                          \
	X(ssize_t, write, (int, const void *, size_t))                         \
	X(ssize_t, pwrite, (int, const void *, size_t, off_t))                 \
	X(ssize_t, pwrite64, (int, const void *, size_t, off_t))               \
	X(ssize_t, writev, (int, const struct iovec *, int))                   \
	X(ssize_t, pwritev, (int, const struct iovec *, int, off_t))           \
	X(ssize_t, pwritev64, (int, const struct iovec *, int, off_t))         \
	X(ssize_t, pwritev2, (int, const struct iovec *, int, off_t, int))     \
	X(ssize_t, pwritev64v2, (int, const struct iovec *, int, off_t, int))  \
	X(ssize_t, send, (int, const void *, size_t, int))                     \
	X(ssize_t, sendto,                                                     \
	  (int, const void *, size_t, int, const void *, socklen_t))           \
	X(ssize_t, sendmsg, (int, const struct msghdr *, int))                 \
	X(int, sendmmsg, (int, struct mmsghdr *, unsigned, int))               \
	X(ssize_t, sendfile, (int, int, off_t *, size_t))                      \
	X(ssize_t, sendfile64, (int, int, off_t *, size_t))                    \
	X(ssize_t, splice, (int, off_t *, int, off_t *, size_t, unsigned))     \
	X(ssize_t, copy_file_range,                                            \
	  (int, off_t *, int, off_t *, size_t, unsigned))                      \
	X(int, ftruncate, (int, off_t))                                        \
	X(int, ftruncate64, (int, off_t))                                      \
	X(int, truncate, (const char *, off_t))                                \
	X(int, truncate64, (const char *, off_t))                              \
	X(int, fallocate, (int, int, off_t, off_t))                            \
	X(int, fallocate64, (int, int, off_t, off_t))                          \
	X(int, posix_fallocate, (int, off_t, off_t))                           \
	X(int, posix_fallocate64, (int, off_t, off_t))                         \
	X(void *, mmap, (void *, size_t, int, int, int, off_t))                \
	X(void *, mmap64, (void *, size_t, int, int, int, off_t))              \
	X(int, rename, (const char *, const char *))                           \
	X(int, renameat, (int, const char *, int, const char *))               \
	X(int, renameat2, (int, const char *, int, const char *, unsigned))    \
	X(int, link, (const char *, const char *))                             \
	X(int, linkat, (int, const char *, int, const char *, int))            \
	X(int, symlink, (const char *, const char *))                          \
	X(int, symlinkat, (const char *, int, const char *))                   \
	X(int, mkdir, (const char *, mode_t))                                  \
	X(int, mkdirat, (int, const char *, mode_t))                           \
	X(int, mkfifo, (const char *, mode_t))                                 \
	X(int, unlink, (const char *))                                         \
	X(int, unlinkat, (int, const char *, int))                             \
	X(int, remove, (const char *))                                         \
	X(int, rmdir, (const char *))                                          \
	X(int, fsync, (int))                                                   \
	X(int, fdatasync, (int))                                               \
	X(void, sync, (void))                                                  \
	X(int, syncfs, (int))                                                  \
	X(int, sync_file_range, (int, off_t, off_t, unsigned))                 \
	X(int, msync, (void *, size_t, int))                                   \
	X(int, futimens, (int, const struct timespec *))                       \
	X(int, utimensat, (int, const char *, const struct timespec *, int))   \
	X(int, utimes, (const char *, const struct timeval *))                 \
	X(int, futimes, (int, const struct timeval *))                         \
	X(int, utime, (const char *, const struct utimbuf *))

/* What is asked of the C library, and not wrapped (stdio_ext(3)). */
#define REFIT_ASKED(X)                                                         \
	X(size_t, __fpending, (FILE *))                                        \
	X(int, __fwritable, (FILE *))                                          \
	X(int, fileno, (FILE *))

/* NULL where nobody defines such a function. */
struct refit_next_calls {
#define X(type, name, args) type(*name) args;
	REFIT_NEXT_CALLS(X)
	REFIT_ASKED(X)
#undef X
};

extern HIDDEN struct refit_next_calls refit_next_calls;

/* Looks all of them up. */
void refit_find_next_calls(void);

/* The function; a library's constructor may call it before ours ran. */
#define NEXT(name)                                                             \
	(LIKELY(refit_next_calls.name != NULL)                                 \
		 ? refit_next_calls.name                                       \
		 : (refit_find_next_calls(), refit_next_calls.name))

/* Leaves the wrapper where nobody defines it. */
#define NEXT_OR_FAIL(name, failed)                                             \
	__typeof__(refit_next_calls.name) next = NEXT(name);                   \
	if (UNLIKELY(!next)) {                                                 \
		errno = ENOSYS;                                                \
		return failed;                                                 \
	}

#endif
