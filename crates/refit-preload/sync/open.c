/* Flags that ask for durability or bypass the page cache: O_SYNC, O_DSYNC and
 * O_DIRECT of every function that opens a file, RWF_SYNC and RWF_DSYNC of
 * pwritev2.
 *
 * O_SYNC has to be removed before the open, as F_SETFL ignores it (fcntl(2)).
 * O_DIRECT is removed after the real open, so that the open fails exactly where
 * it would have, and from regular files only.
 */
#include <alloca.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <linux/openat2.h>

#include "decision.h"
#include "next.h"
#include "open_mode.h"
#include "path.h"
#include "sync.h"

#undef open64
#undef openat64
#undef mkostemp64
#undef mkostemps64

/* O_SYNC is O_DSYNC and one more bit, and the kernel accepts either. */
#define SYNC_BITS (O_SYNC | O_DSYNC)
#define RWF_SYNC_BITS 0x6 /* RWF_DSYNC | RWF_SYNC, pwritev2(2) */

/* Counts writes that wait for the real disk, and not for the emulated one. */
static void bypass_disk(void)
{
	if (refit.image && refit.decision == REFIT_DECISION_DISK) {
		refit_add(&refit.image->not_delayed, 1);
	}
}

static void count_open(int is_suppressed)
{
	if (!refit_counted(REFIT_CALL_OPEN_SYNC, is_suppressed)) {
		bypass_disk();
	}
}

/* An open with O_TMPFILE makes a file without a name, and to close it undoes that:
 * where the file decides it is opened without O_SYNC, and again as asked if it is
 * outside of the scope. Beneath a filter too: refit's opener cannot pass such a file
 * on (its user would be another's, which linkat with AT_EMPTY_PATH looks at). */
static int is_tried(int flags)
{
	return UNLIKELY((flags & O_TMPFILE) == O_TMPFILE) && refit.by_path &&
	       flags & SYNC_BITS && !(flags & O_PATH) &&
	       !refit_beneath_own_seccomp();
}

int refit_open_flags(int flags)
{
	if (is_tried(flags)) {
		return flags & ~SYNC_BITS;
	}
	/* With O_PATH the kernel ignores nearly every flag (open(2)). Where the
	 * file decides, refit_opened counts. */
	if (LIKELY(!(flags & SYNC_BITS)) || (flags & O_PATH) || refit.by_path) {
		return flags;
	}
	if (refit_all_off()) {
		count_open(1);
		return flags & ~SYNC_BITS;
	}
	if (!refit_notified()) {
		count_open(0);
	}
	return flags;
}

static int is_regular(int fd)
{
	struct stat st;
	return prim_syscall(SYS_fstat, fd, &st, 0, 0) == 0 &&
	       S_ISREG(st.st_mode);
}

static int strip_direct(int fd)
{
	if (!refit_strips_some_direct() || refit.iopoll || !is_regular(fd) ||
	    !refit_strips_direct(fd)) {
		return 0;
	}
	long flags = prim_syscall(SYS_fcntl, fd, F_GETFL, 0, 0);
	return flags >= 0 && prim_syscall(SYS_fcntl, fd, F_SETFL,
					  flags & ~O_DIRECT, 0) == 0;
}

/* The path is known only after the open, and F_SETFL cannot take O_SYNC
 * away: so the file is opened again through its descriptor, and gets the
 * same number. Where that fails (a file that its own mode forbids us) it
 * stays as it was. */
static int open_again(int fd, int flags)
{
	if (refit_beneath_own_seccomp() || !is_regular(fd) ||
	    refit_decide_by_file(fd) != REFIT_DECISION_OFF) {
		return 0;
	}
	char link[REFIT_FD_LINK];
	refit_fd_link(fd, link);
	/* With the flags that it has now: mkostemp adds O_RDWR by itself, and
	 * F_GETFL does not return what an open does once (O_CREAT, O_TRUNC). */
	long is = prim_syscall(SYS_fcntl, fd, F_GETFL, 0, 0);
	if (is < 0) {
		return 0;
	}
	int again = ((int)is & ~(SYNC_BITS | O_TMPFILE | O_NOFOLLOW)) |
		    O_CLOEXEC;
	long fresh = prim_syscall(SYS_openat, AT_FDCWD, link, again, 0);
	if (fresh < 0) {
		return 0;
	}
	int done = prim_syscall(SYS_dup3, fresh, fd, flags & O_CLOEXEC, 0) >= 0;
	prim_syscall(SYS_close, fresh, 0, 0, 0);
	return done;
}

int refit_opens_as_asked(int fd, int flags)
{
	if (LIKELY(!is_tried(flags)) || fd < 0) {
		return 0;
	}
	if (refit_decide_by_file(fd) == REFIT_DECISION_OFF) {
		count_open(1);
		return 0;
	}
	if (!refit_notified()) {
		count_open(0);
	}
	prim_syscall(SYS_close, fd, 0, 0, 0);
	return 1;
}

int refit_opened(int fd, int flags)
{
	/* Beneath a filter refit has decided before the open. */
	if (UNLIKELY(refit.by_path) && (flags & SYNC_BITS) && fd >= 0 &&
	    !(flags & O_PATH) && !refit_notified() && !is_tried(flags)) {
		count_open(open_again(fd, flags));
	}
	if (UNLIKELY(flags & O_DIRECT) && fd >= 0 && !(flags & O_PATH)) {
		refit_counted(REFIT_CALL_OPEN_DIRECT, strip_direct(fd));
	}
	return fd;
}

void refit_setfl_done(int fd, int flags)
{
	if (flags & O_DIRECT) {
		refit_counted(REFIT_CALL_SETFL_DIRECT, strip_direct(fd));
	}
}

int refit_pwritev2_flags(int fd, int flags)
{
	if (LIKELY(!(flags & RWF_SYNC_BITS))) {
		return flags;
	}
	/* What is not a file may refuse the flags: an eventfd does. */
	int is_off = refit_sync_is_off(fd);
	/* refit counts what the filter asks about. */
	if (!is_off && refit_notified()) {
		return flags;
	}
	if (refit_counted(REFIT_CALL_PWRITEV2, is_off)) {
		return flags & ~RWF_SYNC_BITS;
	}
	bypass_disk();
	return flags;
}

/* how is in the program's memory, and the pointer may be anything: it is
 * read in the way in which the kernel reads it. It may be larger than ours:
 * a later kernel's, or zeros. What cannot be read, or is larger than a page,
 * is left to the kernel to refuse. */
long refit_openat2(int dirfd, const char *path, const void *how, size_t size)
{
	if (refit_beneath_own_seccomp() || size < sizeof(struct open_how) ||
	    size > 4096) {
		return prim_syscall(SYS_openat2, dirfd, path, how, size);
	}
	struct open_how *copy = alloca(size);
	struct iovec to = {copy, size};
	struct iovec from = {(void *)(uintptr_t)how, size};
	long pid = prim_syscall(SYS_getpid, 0, 0, 0, 0);
	if (prim_syscall6(SYS_process_vm_readv, pid, (long)&to, 1, (long)&from,
			  1, 0) != (long)size) {
		return prim_syscall(SYS_openat2, dirfd, path, how, size);
	}
	int flags = (int)copy->flags;
	copy->flags = (copy->flags & ~(uint64_t)SYNC_BITS) |
		      ((unsigned)refit_open_flags(flags) & SYNC_BITS);
	/* A filter cannot look into how, and would ask about each. */
	long cookie = copy->flags & SYNC_BITS ? 0 : REFIT_COOKIE;
	long fd = prim_syscall6(SYS_openat2, dirfd, (long)path, (long)copy,
				(long)size, 0, cookie);
	if (refit_opens_as_asked((int)fd, flags)) {
		fd = prim_syscall(SYS_openat2, dirfd, path, how, size);
	}
	return refit_opened((int)fd, flags);
}

static int raw_open(int dirfd, const char *path, int flags, mode_t mode)
{
	return (int)prim_result(
		prim_syscall(SYS_openat, dirfd, path, flags, mode));
}

#define DEFINE_OPEN(name)                                                      \
	static int next_##name(const char *path, int flags, mode_t mode)       \
	{                                                                      \
		return refit_next.name                                         \
			       ? refit_next.name(path, flags, mode)            \
			       : raw_open(AT_FDCWD, path, flags, mode);        \
	}                                                                      \
	EXPORT int name(const char *path, int flags, ...)                      \
	{                                                                      \
		READ_MODE(mode, flags)                                         \
		int fd = next_##name(path, refit_open_flags(flags), mode);     \
		if (UNLIKELY(refit_opens_as_asked(fd, flags))) {               \
			fd = next_##name(path, flags, mode);                   \
		}                                                              \
		return refit_opened(fd, flags);                                \
	}

#define DEFINE_OPENAT(name)                                                    \
	static int next_##name(int dirfd, const char *path, int flags,         \
			       mode_t mode)                                    \
	{                                                                      \
		return refit_next.name                                         \
			       ? refit_next.name(dirfd, path, flags, mode)     \
			       : raw_open(dirfd, path, flags, mode);           \
	}                                                                      \
	EXPORT int name(int dirfd, const char *path, int flags, ...)           \
	{                                                                      \
		READ_MODE(mode, flags)                                         \
		int fd = next_##name(dirfd, path, refit_open_flags(flags),     \
				     mode);                                    \
		if (UNLIKELY(refit_opens_as_asked(fd, flags))) {               \
			fd = next_##name(dirfd, path, flags, mode);            \
		}                                                              \
		return refit_opened(fd, flags);                                \
	}

/* What _FORTIFY_SOURCE calls; the C library's own check of the flags is
 * kept. */
#define DEFINE_OPEN_2(name)                                                    \
	EXPORT int name(const char *path, int flags);                          \
	EXPORT int name(const char *path, int flags)                           \
	{                                                                      \
		int use = refit_open_flags(flags);                             \
		int fd = refit_next.name ? refit_next.name(path, use)          \
					 : raw_open(AT_FDCWD, path, use, 0);   \
		return refit_opened(fd, flags);                                \
	}

#define DEFINE_OPENAT_2(name)                                                  \
	EXPORT int name(int dirfd, const char *path, int flags);               \
	EXPORT int name(int dirfd, const char *path, int flags)                \
	{                                                                      \
		int use = refit_open_flags(flags);                             \
		int fd = refit_next.name ? refit_next.name(dirfd, path, use)   \
					 : raw_open(dirfd, path, use, 0);      \
		return refit_opened(fd, flags);                                \
	}

#define DEFINE_MKOSTEMP(name, PARAMETERS, ARGUMENTS)                           \
	EXPORT int name PARAMETERS                                             \
	{                                                                      \
		if (!NEXT(name)) {                                             \
			errno = ENOSYS;                                        \
			return -1;                                             \
		}                                                              \
		int use = refit_open_flags(flags);                             \
		return refit_opened(refit_next.name ARGUMENTS, flags);         \
	}

DEFINE_OPEN(open)
DEFINE_OPEN(open64)
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)
DEFINE_OPEN_2(__open_2)
DEFINE_OPEN_2(__open64_2)
DEFINE_OPENAT_2(__openat_2)
DEFINE_OPENAT_2(__openat64_2)
DEFINE_MKOSTEMP(mkostemp, (char *path, int flags), (path, use))
DEFINE_MKOSTEMP(mkostemp64, (char *path, int flags), (path, use))
DEFINE_MKOSTEMP(mkostemps, (char *path, int length, int flags),
		(path, length, use))
DEFINE_MKOSTEMP(mkostemps64, (char *path, int length, int flags),
		(path, length, use))

/* A C library may have this one day (Linux has it since 5.6). */
EXPORT int openat2(int dirfd, const char *path, const struct open_how *how,
		   size_t size);
EXPORT int openat2(int dirfd, const char *path, const struct open_how *how,
		   size_t size)
{
	return (int)prim_result(refit_openat2(dirfd, path, how, size));
}

#define DEFINE_PWRITEV2(name)                                                  \
	EXPORT ssize_t name(int fd, const struct iovec *parts, int count,      \
			    off_t offset, int flags)                           \
	{                                                                      \
		int use = refit_pwritev2_flags(fd, flags);                     \
		if (refit_next.name) {                                         \
			return refit_next.name(fd, parts, count, offset, use); \
		}                                                              \
		return prim_result(prim_syscall6(SYS_pwritev2, fd,             \
						 (long)parts, count, offset,   \
						 0, use));                     \
	}

#undef pwritev64v2
DEFINE_PWRITEV2(pwritev2)
DEFINE_PWRITEV2(pwritev64v2)

/* The argument is an int, a pointer or absent: one register in any case. */
#define DEFINE_FCNTL(name)                                                     \
	EXPORT int name(int fd, int command, ...)                              \
	{                                                                      \
		va_list args;                                                  \
		va_start(args, command);                                       \
		void *argument = va_arg(args, void *);                         \
		va_end(args);                                                  \
		int result = refit_next.name                                   \
				     ? refit_next.name(fd, command, argument)  \
				     : (int)prim_result(prim_syscall(          \
					       SYS_fcntl, fd, command,         \
					       argument, 0));                  \
		if (command == F_SETFL && result == 0) {                       \
			refit_setfl_done(fd, (int)(intptr_t)argument);         \
		}                                                              \
		return result;                                                 \
	}

#undef fcntl64
DEFINE_FCNTL(fcntl)
DEFINE_FCNTL(fcntl64)
