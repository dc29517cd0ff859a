/* Names of what is loaded in this process. */
#ifndef REFIT_EXECUTABLE_H
#define REFIT_EXECUTABLE_H

#include <link.h>
#include <stddef.h>

/* /proc/self/exe, so that a script matches its interpreter. In a chroot without
 * /proc the kernel's AT_EXECFN will do, unless that is a script's name; empty
 * when that is all there is. */
void refit_find_executable(char *to, size_t size);

/* The path of an object; the program itself is called `executable`. Unchanged
 * where it is NULL. Returns whether it is the program itself. */
int refit_name_object(const struct link_map *object, const char *executable,
		      char *to, size_t size);

#endif
