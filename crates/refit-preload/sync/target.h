/* What an executable file is, and whether a preload can reach it. */
#ifndef REFIT_TARGET_H
#define REFIT_TARGET_H

#include "session.h"

enum refit_target_kind {
	REFIT_TARGET_UNKNOWN, /* cannot be read: nothing is claimed */
	REFIT_TARGET_GLIBC,
	REFIT_TARGET_MUSL,
	REFIT_TARGET_OTHER_LIBC,
	REFIT_TARGET_STATIC,
	REFIT_TARGET_OTHER_ARCHITECTURE,
};

struct refit_target {
	uint32_t kind;   /* enum refit_target_kind */
	uint32_t reason; /* enum refit_reason: REACHED, or why the file is not */
	uint32_t script; /* 1: path is the interpreter of a #! script */
	uint32_t sanitizer;
	uint32_t executable; /* 1: it is there, and somebody may execute it */
	uint32_t own_calls;  /* 1: Go, which makes system calls by itself */
	char path[256];        /* the ELF file that will run */
	char interpreter[128]; /* its PT_INTERP, empty when static */
};

/* Looks at the file that an exec of path (below dirfd, as execveat) would run.
 * Async-signal-safe; opens and closes one descriptor at a time. */
void refit_target_look(int dirfd, const char *path, struct refit_target *out);

/* The same for a descriptor, which stays open. */
void refit_target_look_fd(int fd, struct refit_target *out);

/* Without a look, where a system call might kill: nothing is claimed. */
void refit_target_only_name(const char *path, struct refit_target *out);

#endif
