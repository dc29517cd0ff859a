/* Names of what is loaded in this process. */
#ifndef REFIT_EXECUTABLE_H
#define REFIT_EXECUTABLE_H

#include <stddef.h>

/* /proc/self/exe, so that a script matches its interpreter. In a chroot without
 * /proc the kernel's AT_EXECFN will do, unless that is a script's name; empty
 * when that is all there is. */
void refit_find_executable(char *to, size_t size);

/* The path of the object that holds an address; the program itself is called
 * `executable`. Unchanged when no object does. Returns whether it is the program
 * itself. */
int refit_name_object(const void *address, const char *executable, char *to,
		      size_t size);

#endif
