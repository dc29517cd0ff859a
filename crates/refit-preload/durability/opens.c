/* Calls that open a file to write to it, or make one. */
#include <fcntl.h>
#include <linux/openat2.h>

#include "descriptors.h"
#include "next_calls.h"
#include "open_mode.h"
#include "opens.h"

int refit_may_change(int flags)
{
	return ((flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC)) &&
	       !(flags & O_PATH);
}

struct refit_file refit_before_open(struct refit_name name, int flags)
{
	/* One that is made without a name; and nothing that the file has is lost. */
	static const struct refit_file nothing, anything = {.inode = 1};
	if ((flags & O_TMPFILE) == O_TMPFILE) {
		return nothing;
	}
	return flags & (O_CREAT | O_TRUNC) ? refit_file_named(name, 1)
					   : anything;
}

void refit_tell_open(int fd, struct refit_name name, int flags,
		     struct refit_file before)
{
	struct refit_file file = refit_file_of(fd);
	if (!S_ISREG(file.mode)) {
		refit_descriptor_is(fd, REFIT_DESCRIPTOR_NO_FILE);
		return;
	}
	struct refit_file_event *event = refit_begin_event(REFIT_FILE_OPENED);
	if (event) {
		event->descriptor = fd;
		event->open_flags = (uint32_t)flags;
		event->file = file;
		event->other = before;
		if (before.inode == 0) {
			event->directory = refit_directory_of(name);
		}
		refit_put_new_path_of(event->path, fd);
		refit_end_event(event);
	}
}

/* `call` opens, and its descriptor is told. */
#define OPEN_AND_TELL(at, where, how, call)                                    \
	struct refit_name name = {at, where};                                  \
	int is_told = refit_may_change(how) && refit_tells();                  \
	struct refit_file before = {0};                                        \
	if (is_told) {                                                         \
		before = refit_before_open(name, how);                         \
	}                                                                      \
	int fd = call;                                                         \
	if (fd >= 0) {                                                         \
		refit_forget_descriptor(fd);                                   \
		if (is_told) {                                                 \
			refit_tell_open(fd, name, how, before);                \
		}                                                              \
	}                                                                      \
	return fd;

#define DEFINE_OPEN(call)                                                      \
	EXPORT int call(const char *path, int flags, ...);                     \
	EXPORT int call(const char *path, int flags, ...)                      \
	{                                                                      \
		READ_MODE(mode, flags)                                         \
		NEXT_OR_FAIL(call, -1)                                         \
		OPEN_AND_TELL(AT_FDCWD, path, flags, next(path, flags, mode))  \
	}

#define DEFINE_OPENAT(call)                                                    \
	EXPORT int call(int dirfd, const char *path, int flags, ...);          \
	EXPORT int call(int dirfd, const char *path, int flags, ...)           \
	{                                                                      \
		READ_MODE(mode, flags)                                         \
		NEXT_OR_FAIL(call, -1)                                         \
		OPEN_AND_TELL(dirfd, path, flags,                              \
			      next(dirfd, path, flags, mode))                  \
	}

#define DEFINE_OPEN_2(call)                                                    \
	EXPORT int call(const char *path, int flags);                          \
	EXPORT int call(const char *path, int flags)                           \
	{                                                                      \
		NEXT_OR_FAIL(call, -1)                                         \
		OPEN_AND_TELL(AT_FDCWD, path, flags, next(path, flags))        \
	}

#define DEFINE_OPENAT_2(call)                                                  \
	EXPORT int call(int dirfd, const char *path, int flags);               \
	EXPORT int call(int dirfd, const char *path, int flags)                \
	{                                                                      \
		NEXT_OR_FAIL(call, -1)                                         \
		OPEN_AND_TELL(dirfd, path, flags, next(dirfd, path, flags))    \
	}

#define DEFINE_CREAT(call)                                                     \
	EXPORT int call(const char *path, mode_t mode);                        \
	EXPORT int call(const char *path, mode_t mode)                         \
	{                                                                      \
		NEXT_OR_FAIL(call, -1)                                         \
		OPEN_AND_TELL(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC,    \
			      next(path, mode))                                \
	}

DEFINE_OPEN(open)
DEFINE_OPEN(open64)
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)
DEFINE_OPEN_2(__open_2)
DEFINE_OPEN_2(__open64_2)
DEFINE_OPENAT_2(__openat_2)
DEFINE_OPENAT_2(__openat64_2)
DEFINE_CREAT(creat)
DEFINE_CREAT(creat64)

/* The path is known after the call, and had no file before it. */
#define DEFINE_MKSTEMP(call, PARAMETERS, ARGUMENTS)                            \
	EXPORT int call PARAMETERS;                                            \
	EXPORT int call PARAMETERS                                             \
	{                                                                      \
		NEXT_OR_FAIL(call, -1)                                         \
		int fd = next ARGUMENTS;                                       \
		if (fd >= 0) {                                                 \
			refit_forget_descriptor(fd);                           \
			if (refit_tells()) {                                   \
				refit_tell_open(                               \
					fd,                                    \
					(struct refit_name){AT_FDCWD, path},   \
					O_CREAT | O_EXCL | O_RDWR,             \
					(struct refit_file){0});               \
			}                                                      \
		}                                                              \
		return fd;                                                     \
	}

DEFINE_MKSTEMP(mkstemp, (char *path), (path))
DEFINE_MKSTEMP(mkstemp64, (char *path), (path))
DEFINE_MKSTEMP(mkstemps, (char *path, int length), (path, length))
DEFINE_MKSTEMP(mkstemps64, (char *path, int length), (path, length))
DEFINE_MKSTEMP(mkostemp, (char *path, int flags), (path, flags))
DEFINE_MKSTEMP(mkostemp64, (char *path, int flags), (path, flags))
DEFINE_MKSTEMP(mkostemps, (char *path, int length, int flags),
	       (path, length, flags))
DEFINE_MKSTEMP(mkostemps64, (char *path, int length, int flags),
	       (path, length, flags))
