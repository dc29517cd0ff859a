/* The mode of an open that makes a file. */
#ifndef REFIT_OPEN_MODE_H
#define REFIT_OPEN_MODE_H

#include <fcntl.h>
#include <stdarg.h>
#include <sys/types.h>

/* Reads the mode only where the caller had to give one (open(2)). */
#define READ_MODE(mode, last)                                                  \
	mode_t mode = 0;                                                       \
	if ((last & O_CREAT) || (last & O_TMPFILE) == O_TMPFILE) {             \
		va_list args;                                                  \
		va_start(args, last);                                          \
		mode = va_arg(args, mode_t);                                   \
		va_end(args);                                                  \
	}

#endif
