/* Definitions of our functions in other objects of the program that come after us and
 * are not the C library: without us the program would call them. A preload of the
 * user's own has one, or libeatmydata.
 *
 * The fsync family makes the system call itself, without a look-up: only where there
 * is such a definition it calls that in its place. What is answered here (sync=off, an
 * injected fault) does not reach it. */
#ifndef REFIT_OTHERS_H
#define REFIT_OTHERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct refit_others {
	uint64_t bits; /* as in the image; 0: nearly every program */
	/* NULL: the C library's is the next, or there is none. */
	int (*fsync)(int);
	int (*fdatasync)(int);
	void (*sync)(void);
	int (*syncfs)(int);
	int (*sync_file_range)(int, off64_t, off64_t, unsigned);
	int (*msync)(void *, size_t, int);
};

extern struct refit_others refit_others;

/* For the constructor. Writes the name of the first such object. */
void refit_find_others(char *name, size_t size);

#endif
