/* Calls after which a descriptor is of another file, or of none. */
#include "descriptors.h"
#include "next_calls.h"
#include "streams.h"

EXPORT int close(int fd)
{
	refit_forget_descriptor(fd);
	refit_forget_stream(fd);
	NEXT_OR_FAIL(close, -1)
	return next(fd);
}

static void forget_from(unsigned first, unsigned last)
{
	for (unsigned fd = first; fd <= last && fd < REFIT_DESCRIPTORS; fd++) {
		refit_forget_descriptor((int)fd);
	}
}

EXPORT int close_range(unsigned first, unsigned last, int flags);
EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	forget_from(first, last);
	NEXT_OR_FAIL(close_range, -1)
	return next(first, last, flags);
}

EXPORT void closefrom(int first);
EXPORT void closefrom(int first)
{
	forget_from(first < 0 ? 0 : (unsigned)first, REFIT_DESCRIPTORS);
	NEXT_OR_FAIL(closefrom, )
	next(first);
}

EXPORT int dup(int fd)
{
	NEXT_OR_FAIL(dup, -1)
	int new = next(fd);
	refit_forget_descriptor(new);
	return new;
}

EXPORT int dup2(int fd, int new)
{
	refit_forget_descriptor(new);
	NEXT_OR_FAIL(dup2, -1)
	return next(fd, new);
}

EXPORT int dup3(int fd, int new, int flags);
EXPORT int dup3(int fd, int new, int flags)
{
	refit_forget_descriptor(new);
	NEXT_OR_FAIL(dup3, -1)
	return next(fd, new, flags);
}
