/* Functions of an interpreter that a thread is in: CPython's, 3.11 to 3.14.
 *
 * Where they lie is what the interpreter itself publishes (since 3.13,
 * struct _Py_DebugOffsets), or what its headers have (3.11 and 3.12, whose minor versions do
 * not change it: Include/internal/pycore_frame.h, cpython/code.h). The first stacks are
 * read by the kernel, which raises no signal; what has another type than expected is
 * left out. */
#ifndef REFIT_SCRIPT_STACK_H
#define REFIT_SCRIPT_STACK_H

#include <stdint.h>

/* Looks for an interpreter among the objects that were loaded at the start of the
 * program. For constructors. */
void refit_find_interpreter(void);

/* Puts those of the calling thread, the innermost first, as many as there is room for:
 * function, file and line, with a NUL after each. Returns how many bytes. Of a version
 * that is not known there is one function, which says so, without file and line. */
uint64_t refit_put_script_stack(char *to, uint64_t size);

#endif
