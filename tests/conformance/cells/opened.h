// Opens, and what is to be reported of the descriptor that came of one.
#ifndef OPENED_H
#define OPENED_H

#include "cell.h"

#include <sys/types.h>

// The doors that take any flags. open has no directory: it is not asked with one.
struct door {
    const char *name;
    int (*open)(int dir, const char *path, int flags, mode_t mode);
    int takes_directory;
};
extern const struct door doors[];
extern const size_t door_count;

#define OPENED(interface, kind, expression)                                                                        \
    do {                                                                                                           \
        errno = KEPT;                                                                                              \
        int opened_fd = (int)(expression);                                                                         \
        int opened_errno = errno;                                                                                  \
        opened(interface, kind, opened_fd, opened_errno);                                                          \
    } while (0)

// Prints the cell, writes a byte where that is allowed, and closes the descriptor.
void opened(const char *interface, const char *kind, int fd, int after);

// What F_GETFL tells, without the sync bits; by name the flags whose number is the architecture's: 02+O_LARGEFILE. Valid
// until the next call.
const char *flags_text(int flags);

#endif
