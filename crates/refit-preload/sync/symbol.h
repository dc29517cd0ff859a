/* Functions of other libraries by their names. Before glibc 2.34 dlsym is in libdl,
 * which a program that loads nothing by itself does not have; to bring it along
 * would take six system calls of every start. There they are looked up here. */
#ifndef REFIT_SYMBOL_H
#define REFIT_SYMBOL_H

#include <dlfcn.h>

#include "prim.h"

/* As dlsym(3): scope is RTLD_DEFAULT, RTLD_NEXT or a handle. */
HIDDEN void *refit_symbol(void *scope, const char *name);

/* Takes the message about what was not found: the program would read it as one
 * about a call of its own. */
HIDDEN void refit_forget_symbol_errors(void);

#endif
