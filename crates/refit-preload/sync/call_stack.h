/* What refit unwinds a stack from, outside of the program. */
#ifndef REFIT_CALL_STACK_H
#define REFIT_CALL_STACK_H

#include <stddef.h>
#include <stdint.h>

/* Copies what lies at `from`, where the calling thread's stack is, and above; returns how
 * many bytes. */
uint64_t refit_copy_stack(void *to, uint64_t from, size_t size);

/* Copies those lines of an open /proc/PID/maps that have code; returns how many bytes. No
 * memory is allocated, and little stack is used. */
uint64_t refit_copy_code_lines(long fd, char *to, uint64_t size);

#endif
