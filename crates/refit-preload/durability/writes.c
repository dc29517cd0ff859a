/* Calls that write to a file. One that was told is not told again until some process
 * begins a sync: what it adds waits for the same one. */
#include <fcntl.h>
#include <sys/mman.h>

#include "descriptors.h"
#include "next_calls.h"
#include "writes.h"

#define RWF_SYNC_BITS 0x6 /* RWF_DSYNC | RWF_SYNC, pwritev2(2) */

static uint64_t syncs(void)
{
	return __atomic_load_n(&refit_events->syncs, __ATOMIC_ACQUIRE);
}

static int acknowledges(struct refit_file file)
{
	unsigned how = refit_events->acknowledges;
	struct refit_directory_id wanted = refit_events->acknowledged;
	return (how & REFIT_ACKNOWLEDGES_SOCKET && S_ISSOCK(file.mode)) ||
	       (how & REFIT_ACKNOWLEDGES_DESCRIPTOR &&
		file.device == wanted.device && file.inode == wanted.inode);
}

static void acknowledge(int fd, struct refit_file file)
{
	struct refit_file_event *event =
		refit_begin_event(REFIT_FILE_ACKNOWLEDGED);
	if (event) {
		event->descriptor = fd;
		event->file = file;
		refit_end_event(event);
	}
}

/* Whether each write waits for the disk: as it was opened (fcntl(2): F_SETFL does not
 * change that). */
static int is_synchronous(int fd)
{
	unsigned bits = refit_bits_of(fd);
	if (!(bits & REFIT_SYNC_IS_KNOWN)) {
		long flags = prim_syscall(SYS_fcntl, fd, F_GETFL, 0, 0);
		bits = REFIT_SYNC_IS_KNOWN;
		if (flags >= 0 && flags & O_DSYNC) {
			bits |= REFIT_IS_SYNCHRONOUS;
		}
		refit_set_bits(fd, bits);
	}
	return (bits & REFIT_IS_SYNCHRONOUS) != 0;
}

void refit_tell_write(int fd, unsigned flags)
{
	if (!refit_tells()) {
		return;
	}
	uint64_t now = syncs();
	struct refit_file file = refit_file_of(fd);
	if (refit_events->acknowledges && acknowledges(file)) {
		acknowledge(fd, file);
		return;
	}
	if (!S_ISREG(file.mode)) {
		refit_descriptor_is(fd, REFIT_DESCRIPTOR_NO_FILE);
		return;
	}
	struct refit_file_event *event = refit_begin_event(REFIT_FILE_WROTE);
	if (event) {
		event->descriptor = fd;
		event->file = file;
		event->flags = flags;
		if (!(flags & REFIT_FILE_DURABLE) && is_synchronous(fd)) {
			event->flags |= REFIT_FILE_DURABLE;
		}
		refit_put_new_path_of(event->path, fd);
		refit_end_event(event);
		/* A durable write leaves those before it as they were. */
		refit_descriptor_is(fd, flags & REFIT_FILE_DURABLE ? 0 : now);
	}
}

static int is_told(int fd)
{
	if ((unsigned)fd >= REFIT_DESCRIPTORS) {
		return 0;
	}
	uint64_t state =
		__atomic_load_n(&refit_descriptors[fd], __ATOMIC_RELAXED);
	return state == syncs() || (state == REFIT_DESCRIPTOR_NO_FILE &&
				    !refit_events->acknowledges);
}

/* After the call: what ended before a sync began belongs to it. */
static inline void wrote(int fd, long result, unsigned flags)
{
	if (result > 0 && refit_events && UNLIKELY(!is_told(fd) || flags)) {
		refit_tell_write(fd, flags);
	}
}

#define DEFINE_WRITE(name, PARAMETERS, ARGUMENTS, FLAGS)                       \
	EXPORT ssize_t name PARAMETERS;                                        \
	EXPORT ssize_t name PARAMETERS                                         \
	{                                                                      \
		NEXT_OR_FAIL(name, -1)                                         \
		ssize_t result = next ARGUMENTS;                               \
		wrote(fd, result, FLAGS);                                      \
		return result;                                                 \
	}

DEFINE_WRITE(write, (int fd, const void *at, size_t size), (fd, at, size), 0)
DEFINE_WRITE(pwrite, (int fd, const void *at, size_t size, off_t offset),
	     (fd, at, size, offset), 0)
DEFINE_WRITE(pwrite64, (int fd, const void *at, size_t size, off_t offset),
	     (fd, at, size, offset), 0)
DEFINE_WRITE(writev, (int fd, const struct iovec *parts, int count),
	     (fd, parts, count), 0)
DEFINE_WRITE(pwritev,
	     (int fd, const struct iovec *parts, int count, off_t offset),
	     (fd, parts, count, offset), 0)
DEFINE_WRITE(pwritev64,
	     (int fd, const struct iovec *parts, int count, off_t offset),
	     (fd, parts, count, offset), 0)

#define OF_RWF(how) ((how) & RWF_SYNC_BITS ? REFIT_FILE_DURABLE : 0)
DEFINE_WRITE(pwritev2,
	     (int fd, const struct iovec *parts, int count, off_t offset,
	      int how),
	     (fd, parts, count, offset, how), OF_RWF(how))
DEFINE_WRITE(pwritev64v2,
	     (int fd, const struct iovec *parts, int count, off_t offset,
	      int how),
	     (fd, parts, count, offset, how), OF_RWF(how))

DEFINE_WRITE(sendfile, (int fd, int from, off_t *offset, size_t size),
	     (fd, from, offset, size), 0)
DEFINE_WRITE(sendfile64, (int fd, int from, off_t *offset, size_t size),
	     (fd, from, offset, size), 0)
DEFINE_WRITE(splice,
	     (int from, off_t *from_at, int fd, off_t *at, size_t size,
	      unsigned flags),
	     (from, from_at, fd, at, size, flags), 0)
DEFINE_WRITE(copy_file_range,
	     (int from, off_t *from_at, int fd, off_t *at, size_t size,
	      unsigned flags),
	     (from, from_at, fd, at, size, flags), 0)

/* ---- sockets: for acknowledgements alone --------------------------------- */

static inline void sent(int fd, long result)
{
	if (result >= 0 && refit_events && refit_events->acknowledges) {
		refit_tell_write(fd, 0);
	}
}

#define DEFINE_SEND(type, name, PARAMETERS, ARGUMENTS)                         \
	EXPORT type name PARAMETERS;                                           \
	EXPORT type name PARAMETERS                                            \
	{                                                                      \
		NEXT_OR_FAIL(name, -1)                                         \
		type result = next ARGUMENTS;                                  \
		sent(fd, result);                                              \
		return result;                                                 \
	}

DEFINE_SEND(ssize_t, send, (int fd, const void *at, size_t size, int flags),
	    (fd, at, size, flags))
DEFINE_SEND(ssize_t, sendto,
	    (int fd, const void *at, size_t size, int flags,
	     __CONST_SOCKADDR_ARG to, socklen_t length),
	    (fd, at, size, flags, to.__sockaddr__, length))
DEFINE_SEND(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags),
	    (fd, message, flags))
DEFINE_SEND(int, sendmmsg,
	    (int fd, struct mmsghdr *messages, unsigned count, int flags),
	    (fd, messages, count, flags))

/* ---- sizes --------------------------------------------------------------- */

static void resized(int fd, struct refit_name name, off_t size,
		    struct refit_file before)
{
	struct refit_file_event *event =
		refit_begin_event(REFIT_FILE_RESIZED);
	if (!event) {
		return;
	}
	event->descriptor = fd;
	event->at = (uint64_t)size;
	event->other = before;
	if (fd >= 0) {
		event->file = refit_file_of(fd);
		refit_put_new_path_of(event->path, fd);
	} else {
		event->file = refit_file_named(name, 1);
		refit_put_path(event->path, name);
	}
	refit_end_event(event);
}

static const struct refit_name no_name = {-1, NULL};

#define DEFINE_FTRUNCATE(call)                                                 \
	EXPORT int call(int fd, off_t size);                                   \
	EXPORT int call(int fd, off_t size)                                    \
	{                                                                      \
		NEXT_OR_FAIL(call, -1)                                         \
		if (!refit_tells()) {                                          \
			return next(fd, size);                                 \
		}                                                              \
		struct refit_file before = refit_file_of(fd);                  \
		int result = next(fd, size);                                   \
		if (result == 0) {                                             \
			resized(fd, no_name, size, before);                    \
		}                                                              \
		return result;                                                 \
	}

#define DEFINE_TRUNCATE(call)                                                  \
	EXPORT int call(const char *path, off_t size);                         \
	EXPORT int call(const char *path, off_t size)                          \
	{                                                                      \
		NEXT_OR_FAIL(call, -1)                                         \
		if (!refit_tells()) {                                          \
			return next(path, size);                               \
		}                                                              \
		struct refit_name name = {AT_FDCWD, path};                     \
		struct refit_file before = refit_file_named(name, 1);          \
		int result = next(path, size);                                 \
		if (result == 0) {                                             \
			resized(-1, name, size, before);                       \
		}                                                              \
		return result;                                                 \
	}

DEFINE_FTRUNCATE(ftruncate)
DEFINE_FTRUNCATE(ftruncate64)
DEFINE_TRUNCATE(truncate)
DEFINE_TRUNCATE(truncate64)

/* Allocated blocks are a change that waits for a sync, too. */
#define DEFINE_FALLOCATE(name, PARAMETERS, ARGUMENTS)                          \
	EXPORT int name PARAMETERS;                                            \
	EXPORT int name PARAMETERS                                             \
	{                                                                      \
		NEXT_OR_FAIL(name, -1)                                         \
		int result = next ARGUMENTS;                                   \
		wrote(fd, result == 0, 0);                                     \
		return result;                                                 \
	}

DEFINE_FALLOCATE(fallocate, (int fd, int mode, off_t at, off_t size),
		 (fd, mode, at, size))
DEFINE_FALLOCATE(fallocate64, (int fd, int mode, off_t at, off_t size),
		 (fd, mode, at, size))
DEFINE_FALLOCATE(posix_fallocate, (int fd, off_t at, off_t size),
		 (fd, at, size))
DEFINE_FALLOCATE(posix_fallocate64, (int fd, off_t at, off_t size),
		 (fd, at, size))

/* ---- mappings ------------------------------------------------------------ */

static __attribute__((noinline)) void mapped(void *at, size_t size, int fd)
{
	struct refit_file file = refit_file_of(fd);
	if (!S_ISREG(file.mode) || !refit_tells()) {
		return;
	}
	struct refit_file_event *event = refit_begin_event(REFIT_FILE_MAPPED);
	if (event) {
		event->descriptor = fd;
		event->file = file;
		event->at = (uintptr_t)at;
		event->length = size;
		refit_put_new_path_of(event->path, fd);
		refit_end_event(event);
	}
}

#define DEFINE_MMAP(name)                                                      \
	EXPORT void *name(void *at, size_t size, int access, int flags,        \
			  int fd, off_t offset);                               \
	EXPORT void *name(void *at, size_t size, int access, int flags,        \
			  int fd, off_t offset)                                \
	{                                                                      \
		NEXT_OR_FAIL(name, MAP_FAILED)                                 \
		void *result = next(at, size, access, flags, fd, offset);      \
		if (UNLIKELY(access & PROT_WRITE && flags & MAP_SHARED &&      \
			     fd >= 0 && refit_events &&                        \
			     result != MAP_FAILED)) {                          \
			mapped(result, size, fd);                              \
		}                                                              \
		return result;                                                 \
	}

DEFINE_MMAP(mmap)
DEFINE_MMAP(mmap64)
