/* Calls that ask for durability. The sync library, which comes next, makes them, counts
 * them and follows the policy: here they are told, with what they left undone. */
#include <fcntl.h>
#include <sys/mman.h>

#include "descriptors.h"
#include "next_calls.h"
#include "streams.h"

/* A sync that begins: writes from here on are told again. */
static uint64_t begin(void)
{
	__atomic_fetch_add(&refit_events->syncs, 1, __ATOMIC_ACQ_REL);
	return refit_now();
}

static void tell(enum refit_file_operation operation, int fd, uint64_t began,
		 struct refit_file before, long result, unsigned flags)
{
	struct refit_file_event *event = refit_begin_event(operation);
	if (!event) {
		return;
	}
	event->began = began;
	event->descriptor = fd;
	event->file = before;
	event->result = (int32_t)(result < 0 ? -errno : 0);
	event->flags = flags;
	if (fd >= 0) {
		refit_put_new_path_of(event->path, fd);
	}
	refit_end_event(event);
}

#define DEFINE_SYNC(call, operation)                                           \
	EXPORT int call(int fd);                                               \
	EXPORT int call(int fd)                                                \
	{                                                                      \
		NEXT_OR_FAIL(call, -1)                                         \
		if (!refit_tells()) {                                          \
			return next(fd);                                       \
		}                                                              \
		struct refit_file before = refit_file_of(fd);                  \
		unsigned flags =                                               \
			refit_waits_in_stream(fd) ? REFIT_FILE_IN_STREAM : 0;  \
		uint64_t began = begin();                                      \
		int result = next(fd);                                         \
		tell(operation, fd, began, before, result, flags);             \
		return result;                                                 \
	}

DEFINE_SYNC(fsync, REFIT_FILE_SYNCED)
DEFINE_SYNC(fdatasync, REFIT_FILE_DATA_SYNCED)
DEFINE_SYNC(syncfs, REFIT_FILE_FS_SYNCED)

EXPORT void sync(void)
{
	NEXT_OR_FAIL(sync, )
	if (!refit_tells()) {
		next();
		return;
	}
	uint64_t began = begin();
	next();
	tell(REFIT_FILE_ALL_SYNCED, -1, began, (struct refit_file){0}, 0, 0);
}

EXPORT int sync_file_range(int fd, off_t at, off_t size, unsigned flags)
{
	NEXT_OR_FAIL(sync_file_range, -1)
	if (!refit_tells()) {
		return next(fd, at, size, flags);
	}
	struct refit_file before = refit_file_of(fd);
	uint64_t began = begin();
	int result = next(fd, at, size, flags);
	tell(REFIT_FILE_RANGE_SYNCED, fd, began, before, result, 0);
	return result;
}

EXPORT int msync(void *at, size_t size, int flags)
{
	NEXT_OR_FAIL(msync, -1)
	if (!refit_tells()) {
		return next(at, size, flags);
	}
	uint64_t began = begin();
	int result = next(at, size, flags);
	struct refit_file_event *event =
		refit_begin_event(REFIT_FILE_MAP_SYNCED);
	if (event) {
		event->began = began;
		event->at = (uintptr_t)at;
		event->length = size;
		event->result = result < 0 ? -errno : 0;
		event->flags = flags & MS_SYNC ? 0 : REFIT_FILE_ASYNC;
		refit_end_event(event);
	}
	return result;
}
