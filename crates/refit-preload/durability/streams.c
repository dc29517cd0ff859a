/* Streams: what fopen(3) opens, and what waits in a buffer. The C library writes a buffer
 * by a call of its own, which no other library sees: a stream is looked at when it is
 * flushed or closed, when its file is synced, and when the process ends. */
#include "streams.h"

#include <fcntl.h>

#include "descriptors.h"
#include "next_calls.h"
#include "opens.h"
#include "writes.h"

/* Streams of files that are written to, by descriptor. */
#define STREAMS 1024
static FILE *streams[STREAMS];

static void is_stream_of(int fd, FILE *stream)
{
	if (fd >= 0 && fd < STREAMS) {
		__atomic_store_n(&streams[fd], stream, __ATOMIC_RELAXED);
	}
}

void refit_forget_stream(int fd)
{
	is_stream_of(fd, NULL);
}

/* Bytes in the buffer of a stream that is written to. */
static size_t pending(FILE *stream)
{
	return refit_next_calls.__fpending && refit_next_calls.__fwritable &&
			       refit_next_calls.__fwritable(stream)
		       ? refit_next_calls.__fpending(stream)
		       : 0;
}

/* -1 where the stream has none. errno stays: the caller's call has not failed. */
static int descriptor_of(FILE *stream)
{
	int error = errno;
	int fd = refit_next_calls.fileno ? refit_next_calls.fileno(stream) : -1;
	errno = error;
	return fd;
}

int refit_waits_in_stream(int fd)
{
	FILE *stream = fd >= 0 && fd < STREAMS
			       ? __atomic_load_n(&streams[fd], __ATOMIC_RELAXED)
			       : NULL;
	return stream && pending(stream) > 0;
}

/* The flags of open(2) for a mode of fopen(3). */
static int flags_of(const char *mode)
{
	int flags = mode[0] == 'r'   ? 0
		    : mode[0] == 'w' ? O_CREAT | O_TRUNC
		    : mode[0] == 'a' ? O_CREAT | O_APPEND
				     : 0;
	int both = 0;
	for (const char *at = mode; *at && *at != ','; at++) {
		both |= *at == '+';
		flags |= *at == 'x' ? O_EXCL : 0;
	}
	return flags | (both ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY);
}

static FILE *opened(FILE *stream, int is_told, struct refit_name name, int flags,
		    struct refit_file before)
{
	int fd = stream && refit_events ? descriptor_of(stream) : -1;
	if (fd >= 0) {
		refit_forget_descriptor(fd);
		is_stream_of(fd, refit_may_change(flags) ? stream : NULL);
		if (is_told && name.path) {
			refit_tell_open(fd, name, flags, before);
		}
	}
	return stream;
}

#define OPEN_STREAM(call)                                                      \
	int flags = mode ? flags_of(mode) : 0;                                 \
	struct refit_name name = {AT_FDCWD, path};                             \
	int is_told = refit_may_change(flags) && refit_tells();                \
	struct refit_file before = {0};                                        \
	if (is_told) {                                                         \
		before = refit_before_open(name, flags);                       \
	}                                                                      \
	return opened(call, is_told, name, flags, before);

#define DEFINE_FOPEN(call)                                                     \
	EXPORT FILE *call(const char *path, const char *mode);                 \
	EXPORT FILE *call(const char *path, const char *mode)                  \
	{                                                                      \
		NEXT_OR_FAIL(call, NULL)                                       \
		OPEN_STREAM(next(path, mode))                                  \
	}

/* The descriptor of a stream in whose buffer bytes wait, or -1. `ends`: the stream is
 * about to be closed. */
static int waiting_of(FILE *stream, int ends)
{
	int fd = refit_events ? descriptor_of(stream) : -1;
	if (fd < 0) {
		return -1;
	}
	if (ends) {
		is_stream_of(fd, NULL);
	}
	return pending(stream) > 0 ? fd : -1;
}

#define DEFINE_FREOPEN(call)                                                   \
	EXPORT FILE *call(const char *path, const char *mode, FILE *stream);   \
	EXPORT FILE *call(const char *path, const char *mode, FILE *stream)    \
	{                                                                      \
		NEXT_OR_FAIL(call, NULL)                                       \
		int fd = waiting_of(stream, 1);                                   \
		if (fd >= 0) {                                                 \
			refit_tell_write(fd, REFIT_FILE_IN_STREAM);            \
		}                                                              \
		OPEN_STREAM(next(path, mode, stream))                          \
	}

DEFINE_FOPEN(fopen)
DEFINE_FOPEN(fopen64)
DEFINE_FREOPEN(freopen)
DEFINE_FREOPEN(freopen64)

EXPORT FILE *fdopen(int fd, const char *mode)
{
	NEXT_OR_FAIL(fdopen, NULL)
	FILE *stream = next(fd, mode);
	if (stream && mode && refit_may_change(flags_of(mode))) {
		is_stream_of(fd, stream);
	}
	return stream;
}

/* The event comes before the call, as the descriptor is closed in it: what waits is
 * about to be written. */
EXPORT int fclose(FILE *stream)
{
	NEXT_OR_FAIL(fclose, EOF)
	int fd = waiting_of(stream, 1);
	if (fd >= 0) {
		refit_tell_write(fd, REFIT_FILE_IN_STREAM);
	}
	if (refit_events) {
		refit_forget_descriptor(descriptor_of(stream));
	}
	return next(stream);
}

static void tell_all(void)
{
	for (int fd = 0; fd < STREAMS; fd++) {
		if (refit_waits_in_stream(fd)) {
			refit_tell_write(fd, REFIT_FILE_IN_STREAM);
		}
	}
}

#define DEFINE_FFLUSH(call)                                                    \
	EXPORT int call(FILE *stream)                                          \
	{                                                                      \
		NEXT_OR_FAIL(call, EOF)                                        \
		int fd = stream ? waiting_of(stream, 0) : -1;                  \
		if (!stream && refit_events) {                                 \
			tell_all();                                            \
		}                                                              \
		int result = next(stream);                                     \
		if (fd >= 0) {                                                 \
			refit_tell_write(fd, 0);                               \
		}                                                              \
		return result;                                                 \
	}

DEFINE_FFLUSH(fflush)
DEFINE_FFLUSH(fflush_unlocked)

/* What waits when the process ends is written after this. */
__attribute__((destructor)) static void end(void)
{
	if (refit_events) {
		tell_all();
	}
}
