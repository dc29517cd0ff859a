// A cell is one call on one kind of object. Each prints one line:
//
//     interface kind result errno [note…]
//
// errno is `kept` where the call left it as it was, else its name. Groups of cells, one per file.
#ifndef CELL_H
#define CELL_H

#include <errno.h>
#include <stddef.h>

enum { KEPT = 4099 }; // no errno of Linux's

#define CELL(interface, kind, expression)                                                                          \
    do {                                                                                                           \
        errno = KEPT;                                                                                              \
        long cell_result = (long)(expression);                                                                     \
        int cell_errno = errno;                                                                                    \
        cell(interface, kind, cell_result, cell_errno, "");                                                        \
    } while (0)

void cell(const char *interface, const char *kind, long result, int after, const char *note);

// The errno's name, or its number; `kept` for KEPT.
const char *errno_name(int number);

// A result that is -errno on failure, as kernel completions are.
const char *result_name(long result);

// The fixture itself failed: says so on stderr and exits with 1.
_Noreturn void broken(const char *what);

// Its descriptor, unless that is negative: broken().
int must(int fd, const char *what);

struct kind {
    const char *name;
    int fd;
};

// One descriptor of each kind, in the working directory, which has a `file` of one byte.
const struct kind *all_kinds(size_t *count);

void descriptor_cells(void);
void range_cells(void);
void open_cells(void);
void odd_open_cells(void);
void write_cells(void);
void posix_aio_cells(void);
void kernel_aio_cells(void);
void ring_cells(void);
void cancel_cells(void);
// Only where the library is linked.
void libaio_cells(void) __attribute__((weak));
void liburing_cells(void) __attribute__((weak));

#endif
