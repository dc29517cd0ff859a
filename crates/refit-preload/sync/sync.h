/* The durability calls as the kernel has them: -errno on failure. Each counts
 * itself and obeys the image's policy. Used by the libc names and by syscall().
 */
#ifndef REFIT_SYNC_H
#define REFIT_SYNC_H

#include "state.h"

long refit_fsync(enum refit_call call, long nr, int fd);
long refit_syncfs(int fd);
long refit_sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags);
long refit_msync(void *address, size_t size, int flags);
void refit_sync(void);

/* The flags with which a file is to be opened: O_SYNC and O_DSYNC go when sync
 * is off for every file. Counts both ways. */
int refit_open_flags(int flags);

/* What follows an open that asked for O_DIRECT, or for O_SYNC where the file
 * decides; returns fd as it came. */
int refit_opened(int fd, int flags);

long refit_openat2(int dirfd, const char *path, const void *how, size_t size);

/* The flags with which pwritev2 is to write. */
int refit_pwritev2_flags(int fd, int flags);

/* After F_SETFL succeeded with these flags. */
void refit_setfl_done(int fd, int flags);

void refit_seccomp_set(void);

#endif
