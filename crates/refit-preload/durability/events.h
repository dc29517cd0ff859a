/* Events about files, as refit is told of them. */
#ifndef REFIT_EVENTS_H
#define REFIT_EVENTS_H

#include <stddef.h>

#include "file_event.h"
#include "prim.h"

/* NULL: nothing is told. */
extern HIDDEN struct refit_file_events *refit_events;

/* Whether events are wanted, and may be made: beneath a seccomp filter of the
 * program's own no call is made that the program did not make. */
int refit_tells(void);

/* Begins an event about a call that has just ended; NULL: there is no room. */
struct refit_file_event *refit_begin_event(enum refit_file_operation operation);

/* Shows it to refit, with the stack of the caller. */
void refit_end_event(struct refit_file_event *event);

/* Number of events so far. */
static inline uint64_t refit_now(void)
{
	return __atomic_load_n(&refit_events->events, __ATOMIC_RELAXED);
}

/* A name in the file system: as the program gave it. */
struct refit_name {
	int directory; /* descriptor, or AT_FDCWD */
	const char *path;
};

/* The file of a name; what symbolic links lead to, where `follow`. */
struct refit_file refit_file_named(struct refit_name name, int follow);

/* The file of a descriptor. */
struct refit_file refit_file_of(int fd);

/* The directory that a name lies in. */
struct refit_directory_id refit_directory_of(struct refit_name name);

/* Whether two names are written so that they lie in one directory. */
int refit_are_beside(struct refit_name a, struct refit_name b);

/* The whole path of a name, cut off where it is too long. */
void refit_put_path(char to[REFIT_FILE_EVENT_PATH], struct refit_name name);

/* The path of an open file; empty where it is not known. */
void refit_put_path_of(char to[REFIT_FILE_EVENT_PATH], int fd);

#endif
