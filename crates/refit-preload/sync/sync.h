/* The durability calls: each counts itself and follows the image's policy. They
 * return what the kernel returns: -errno on failure. Used by the names of the C
 * library and by syscall(). */
#ifndef REFIT_SYNC_H
#define REFIT_SYNC_H

#include <sys/types.h>

#include "state.h"

/* How the program called: by a name of the C library, or by number. Another object's
 * definition of a name is passed what we do not answer. */
enum refit_way { REFIT_BY_NUMBER, REFIT_BY_NAME };

long refit_fsync(enum refit_call call, long nr, int fd);
long refit_syncfs(int fd, enum refit_way way);
long refit_sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags,
			   enum refit_way way);
long refit_msync(void *address, size_t size, int flags, enum refit_way way);
void refit_sync(enum refit_way way);

/* The flags with which a file is to be opened: without O_SYNC and O_DSYNC where
 * sync is off for every file. Counts the call. */
int refit_open_flags(int flags);

/* After an open with what that returned: whether the file is outside of a scope that
 * was not known before. Then fd is closed again, and flags are to be used as they are. */
int refit_opens_as_asked(int fd, int flags);

/* After an open with these flags: takes O_DIRECT away, and O_SYNC where that
 * depends on the file. Returns fd. */
int refit_opened(int fd, int flags);

long refit_openat2(int dirfd, const char *path, const void *how, size_t size);

/* The flags with which pwritev2 is to write. */
int refit_pwritev2_flags(int fd, int flags);

/* After F_SETFL succeeded with these flags. */
void refit_setfl_done(int fd, int flags);

/* For syncs that are swapped where they are submitted: whether sync is off for
 * this file, and the kernel would not refuse the call. */
int refit_sync_is_off(int fd);

/* The same of a range, as sync_file_range has it. */
int refit_range_is_off(int fd, off64_t offset, off64_t size);

/* Counts such a call, and returns is_suppressed. */
int refit_counted(enum refit_call call, int is_suppressed);

#endif
