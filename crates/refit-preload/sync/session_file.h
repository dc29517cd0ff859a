/* Files that a process makes in the session, where refit reads them. */
#ifndef REFIT_SESSION_FILE_H
#define REFIT_SESSION_FILE_H

#include <stddef.h>

/* Makes a file of this size in the session's images, and opens it. Its first
 * `allocated` bytes (at least 1) may be written at once; on a full file system the
 * others could end the program with SIGBUS. -1 when it cannot be had. */
long refit_make_session_file(const char *session, size_t size,
			     size_t allocated);

/* Maps a part of it, which begins at a multiple of the page size; NULL when that
 * fails. */
void *refit_map_part(long fd, size_t at, size_t size);

/* Makes such a file and maps it, zeroed. NULL when it cannot be had. */
void *refit_map_session_file(const char *session, size_t size,
			     size_t allocated);

#endif
