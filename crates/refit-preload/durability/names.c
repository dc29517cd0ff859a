/* Calls that make, move and remove names. */
#include <fcntl.h>
#include <linux/fs.h>

#include "events.h"
#include "next_calls.h"

/* ---- renames and links --------------------------------------------------- */

/* What has to be known before the call: it is gone after it. */
struct before {
	int is_told;
	uint64_t began;
	struct refit_file file; /* of the old name */
	struct refit_file replaced;
	struct refit_directory_id directory;
	struct refit_directory_id old_directory;
};

static struct before look(struct refit_name old, struct refit_name new)
{
	struct before before = {0};
	before.is_told = refit_tells();
	if (before.is_told) {
		before.began = refit_now();
		before.file = refit_file_named(old, 0);
		before.replaced = refit_file_named(new, 0);
		before.directory = refit_directory_of(new);
		before.old_directory = refit_are_beside(old, new)
					       ? before.directory
					       : refit_directory_of(old);
	}
	return before;
}

static void tell(enum refit_file_operation operation, struct refit_name old,
		 struct refit_name new, const struct before *before,
		 unsigned flags)
{
	struct refit_file_event *event = refit_begin_event(operation);
	if (!event) {
		return;
	}
	event->began = before->began;
	event->flags = flags;
	/* Another process may have the name by now; what was linked may be the target
	 * of a symbolic link. */
	event->file = operation == REFIT_FILE_RENAMED
			      ? before->file
			      : refit_file_named(new, 0);
	event->other = before->replaced;
	event->directory = before->directory;
	event->old_directory = before->old_directory;
	refit_put_path(event->path, new);
	refit_put_path(event->old_path, old);
	refit_end_event(event);
}

static int renamed(struct refit_name old, struct refit_name new, int result,
		   const struct before *before, unsigned flags)
{
	if (result == 0 && before->is_told) {
		tell(REFIT_FILE_RENAMED, old, new, before,
		     flags & RENAME_EXCHANGE ? REFIT_FILE_EXCHANGED : 0);
	}
	return result;
}

static int linked(struct refit_name old, struct refit_name new, int result,
		  const struct before *before)
{
	if (result == 0 && before->is_told) {
		tell(REFIT_FILE_LINKED, old, new, before, 0);
	}
	return result;
}

EXPORT int rename(const char *from, const char *to)
{
	NEXT_OR_FAIL(rename, -1)
	struct refit_name old = {AT_FDCWD, from}, new = {AT_FDCWD, to};
	struct before before = look(old, new);
	return renamed(old, new, next(from, to), &before, 0);
}

EXPORT int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	NEXT_OR_FAIL(renameat, -1)
	struct refit_name old = {from_dir, from}, new = {to_dir, to};
	struct before before = look(old, new);
	return renamed(old, new, next(from_dir, from, to_dir, to), &before, 0);
}

EXPORT int renameat2(int from_dir, const char *from, int to_dir, const char *to,
		     unsigned flags);
EXPORT int renameat2(int from_dir, const char *from, int to_dir, const char *to,
		     unsigned flags)
{
	NEXT_OR_FAIL(renameat2, -1)
	struct refit_name old = {from_dir, from}, new = {to_dir, to};
	struct before before = look(old, new);
	return renamed(old, new, next(from_dir, from, to_dir, to, flags),
		       &before, flags);
}

EXPORT int link(const char *from, const char *to)
{
	NEXT_OR_FAIL(link, -1)
	struct refit_name old = {AT_FDCWD, from}, new = {AT_FDCWD, to};
	struct before before = look(old, new);
	return linked(old, new, next(from, to), &before);
}

EXPORT int linkat(int from_dir, const char *from, int to_dir, const char *to,
		  int flags)
{
	NEXT_OR_FAIL(linkat, -1)
	struct refit_name old = {from_dir, from}, new = {to_dir, to};
	struct before before = look(old, new);
	return linked(old, new, next(from_dir, from, to_dir, to, flags),
		      &before);
}

/* ---- names of what is no file -------------------------------------------- */

static int made(struct refit_name name, int result)
{
	if (result == 0 && refit_tells()) {
		struct refit_file_event *event =
			refit_begin_event(REFIT_FILE_MADE);
		if (event) {
			event->file = refit_file_named(name, 0);
			event->directory = refit_directory_of(name);
			refit_put_path(event->path, name);
			refit_end_event(event);
		}
	}
	return result;
}

#define DEFINE_MAKE(call, PARAMETERS, ARGUMENTS, AT)                           \
	EXPORT int call PARAMETERS                                             \
	{                                                                      \
		NEXT_OR_FAIL(call, -1)                                         \
		return made((struct refit_name){AT, path}, next ARGUMENTS);    \
	}

DEFINE_MAKE(symlink, (const char *to, const char *path), (to, path), AT_FDCWD)
DEFINE_MAKE(symlinkat, (const char *to, int dirfd, const char *path),
	    (to, dirfd, path), dirfd)
DEFINE_MAKE(mkdir, (const char *path, mode_t mode), (path, mode), AT_FDCWD)
DEFINE_MAKE(mkdirat, (int dirfd, const char *path, mode_t mode),
	    (dirfd, path, mode), dirfd)
DEFINE_MAKE(mkfifo, (const char *path, mode_t mode), (path, mode), AT_FDCWD)

/* ---- removals ------------------------------------------------------------ */

/* The file is known before the call, and told after it. */
struct removal {
	int is_told;
	uint64_t began;
	struct refit_name name;
	struct refit_file file;
	struct refit_directory_id directory;
};

static struct removal look_at(struct refit_name name)
{
	struct removal removal = {0};
	removal.is_told = refit_tells();
	if (removal.is_told) {
		removal.began = refit_now();
		removal.name = name;
		removal.file = refit_file_named(name, 0);
		removal.directory = refit_directory_of(name);
	}
	return removal;
}

static int removed(const struct removal *removal, int result)
{
	if (result == 0 && removal->is_told) {
		struct refit_file_event *event =
			refit_begin_event(REFIT_FILE_REMOVED);
		if (event) {
			event->began = removal->began;
			event->file = removal->file;
			event->other = removal->file;
			event->directory = removal->directory;
			refit_put_path(event->path, removal->name);
			refit_end_event(event);
		}
	}
	return result;
}

#define DEFINE_REMOVE(call, PARAMETERS, ARGUMENTS, AT)                         \
	EXPORT int call PARAMETERS                                             \
	{                                                                      \
		NEXT_OR_FAIL(call, -1)                                         \
		struct removal removal =                                       \
			look_at((struct refit_name){AT, path});                \
		return removed(&removal, next ARGUMENTS);                      \
	}

DEFINE_REMOVE(unlink, (const char *path), (path), AT_FDCWD)
DEFINE_REMOVE(unlinkat, (int dirfd, const char *path, int flags),
	      (dirfd, path, flags), dirfd)
DEFINE_REMOVE(remove, (const char *path), (path), AT_FDCWD)
DEFINE_REMOVE(rmdir, (const char *path), (path), AT_FDCWD)

/* ---- times --------------------------------------------------------------- */

/* By its time of change refit sees writes that were not told: so it has to know who
 * sets it. */
static int timed(int fd, struct refit_name name, int result)
{
	if (result != 0 || !refit_tells()) {
		return result;
	}
	struct refit_file file =
		fd >= 0 ? refit_file_of(fd) : refit_file_named(name, 1);
	struct refit_file_event *event =
		S_ISREG(file.mode) ? refit_begin_event(REFIT_FILE_TIMED) : NULL;
	if (event) {
		event->descriptor = fd;
		event->file = file;
		refit_end_event(event);
	}
	return result;
}

static const struct refit_name no_name = {-1, NULL};

EXPORT int futimens(int fd, const struct timespec times[2])
{
	NEXT_OR_FAIL(futimens, -1)
	return timed(fd, no_name, next(fd, times));
}

EXPORT int futimes(int fd, const struct timeval times[2])
{
	NEXT_OR_FAIL(futimes, -1)
	return timed(fd, no_name, next(fd, times));
}

/* Its declaration says that there is a path. */
static __attribute__((noinline)) int is_null(const char *path)
{
	return path == NULL;
}

EXPORT int utimensat(int dirfd, const char *path, const struct timespec times[2],
		     int flags)
{
	NEXT_OR_FAIL(utimensat, -1)
	struct refit_name name = {dirfd, path};
	/* Without a path it is the descriptor's (utimensat(2)). */
	int result = next(dirfd, path, times, flags);
	return timed(is_null(path) ? dirfd : -1, name, result);
}

EXPORT int utimes(const char *path, const struct timeval times[2])
{
	NEXT_OR_FAIL(utimes, -1)
	return timed(-1, (struct refit_name){AT_FDCWD, path},
		     next(path, times));
}

EXPORT int utime(const char *path, const struct utimbuf *times)
{
	NEXT_OR_FAIL(utime, -1)
	return timed(-1, (struct refit_name){AT_FDCWD, path},
		     next(path, times));
}
