/* Functions of other objects by their names, and the objects that define them.
 *
 * Found in the loader's own list and in the hash tables that it uses, and not by
 * dlsym(3): another preload may define dlsym, before glibc 2.34 a program may have
 * none (it is in libdl), and a name that nobody has makes it allocate. */
#ifndef REFIT_SYMBOL_H
#define REFIT_SYMBOL_H

#include <dlfcn.h>
#include <link.h>

#include "prim.h"

/* The first definition. */
struct refit_definition {
	void *address; /* NULL: nobody has one */
	/* Its object; NULL where the loader shows no list. */
	const struct link_map *object;
};

/* As dlsym(3): scope is RTLD_DEFAULT or RTLD_NEXT. For constructors, and what comes
 * before them: the list is read without the loader's lock. */
HIDDEN struct refit_definition refit_definition(void *scope, const char *name);

/* Its address alone. */
HIDDEN void *refit_symbol(void *scope, const char *name);

/* The same while the program runs: also in objects that were loaded for another one
 * alone (RTLD_LOCAL), by dl_iterate_phdr(3), which takes the lock. */
HIDDEN void *refit_symbol_later(void *scope, const char *name);

/* The objects in the order in which they were loaded, the program first; NULL where
 * the loader shows no list. */
HIDDEN const struct link_map *refit_objects(void);

/* Whether the object is this library. */
HIDDEN int refit_is_us(const struct link_map *object);

/* Its definition of the name, or NULL. */
HIDDEN void *refit_symbol_of(const struct link_map *object, const char *name);

#endif
