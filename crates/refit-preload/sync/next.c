#include "next.h"

#include <dlfcn.h>

/* glibc 2.34 moved these from libdl into libc under a new version; the old one
 * is there in every glibc, and musl does not look at versions. */
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver dladdr,dladdr@GLIBC_2.2.5");
__asm__(".symver dlerror,dlerror@GLIBC_2.2.5");

struct refit_next refit_next;

/* For stubs.S. */
void *refit_next_syscall __attribute__((visibility("hidden")));
void *refit_next_dlopen __attribute__((visibility("hidden")));
void *refit_find_dlopen(void);

static int all_found;

void *refit_find_dlopen(void)
{
	refit_next_dlopen = dlsym(RTLD_NEXT, "dlopen");
	return refit_next_dlopen;
}

void refit_find_next(void)
{
	if (all_found) {
		return;
	}
#define X(type, name, args)                                                    \
	*(void **)&refit_next.name = dlsym(RTLD_NEXT, #name);
	REFIT_NEXT(X)
	REFIT_NEXT_LATER(X)
#undef X
	refit_next_syscall = dlsym(RTLD_NEXT, "syscall");
	refit_find_dlopen();
	Dl_info execvp, execvpe;
	refit_next.foreign_execvp =
		refit_next.execvp && refit_next.execvpe &&
		dladdr(*(void **)&refit_next.execvp, &execvp) &&
		dladdr(*(void **)&refit_next.execvpe, &execvpe) &&
		execvp.dli_fbase != execvpe.dli_fbase;
	/* Takes the message about what was not found: the program would read
	 * it as one about a call of its own. */
	dlerror();
	all_found = 1;
}

/* A library that came by dlopen may have brought another along for itself alone
 * (RTLD_LOCAL): the name leads its calls to us, and RTLD_NEXT does not lead to
 * that library. */
static void *in_scope(void *scope, const char *name)
{
	Dl_info found_in, ours;
	void *found = dlsym(scope, name);
	if (!found || !dladdr(found, &found_in) || !dladdr(&refit_next, &ours) ||
	    found_in.dli_fbase == ours.dli_fbase) {
		return NULL;
	}
	return found;
}

void refit_find_later(const void *caller)
{
	refit_find_next();
	void *(*open)(const char *, int);
	*(void **)&open = refit_next_dlopen;
	Dl_info its;
	void *scope = NULL;
	if (open && dladdr(caller, &its) && its.dli_fname) {
		/* Loads nothing. It is never closed: what is found stays. */
		scope = open(its.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	}
#define X(type, name, args)                                                    \
	if (!refit_next.name) {                                                \
		void *found = dlsym(RTLD_NEXT, #name);                         \
		if (!found && scope) {                                         \
			found = in_scope(scope, #name);                        \
		}                                                              \
		if (found) {                                                   \
			__atomic_store_n((void **)&refit_next.name, found,     \
					 __ATOMIC_RELAXED);                    \
		}                                                              \
	}
	REFIT_NEXT_LATER(X)
#undef X
	dlerror();
}
