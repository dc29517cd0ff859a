#include "next.h"

#include <link.h>

#include "symbol.h"

/* Of libdl before glibc 2.34. */
PRIM_OLDEST(dladdr);
extern __typeof__(dladdr) dladdr __attribute__((weak));

struct refit_next refit_next;

/* For stubs.S. */
void *refit_next_syscall __attribute__((visibility("hidden")));
void *refit_next_dlopen __attribute__((visibility("hidden")));
void *refit_find_dlopen(void);

static int all_found;

struct object_search {
	const void *address;
	ElfW(Addr) base;
	int found;
};

static int holds_address(struct dl_phdr_info *object, size_t size, void *argument)
{
	(void)size;
	struct object_search *search = argument;
	ElfW(Addr) address = (ElfW(Addr))search->address;
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		ElfW(Addr) start = object->dlpi_addr + part->p_vaddr;
		if (part->p_type == PT_LOAD && address >= start &&
		    address - start < part->p_memsz) {
			search->base = object->dlpi_addr;
			search->found = 1;
			return 1;
		}
	}
	return 0;
}

/* Whether one object holds both. Not by dladdr, which reads every symbol of the
 * C library: 0.03 ms for each program that is started. */
int refit_same_object(const void *one, const void *other)
{
	struct object_search first = {.address = one};
	struct object_search second = {.address = other};
	dl_iterate_phdr(holds_address, &first);
	dl_iterate_phdr(holds_address, &second);
	return first.found && second.found && first.base == second.base;
}

/* Of glibc's loader (link.h). */
#pragma weak _r_debug

/* From the loader's own list: fakechroot's dl_iterate_phdr writes to the names of
 * the objects that it visits, and that of the loader lies in read-only memory. */
static int may_have_liburing(void)
{
	if (!&_r_debug) {
		return 1;
	}
	const struct link_map *object = _r_debug.r_map;
	while (object &&
	       !prim_after(prim_basename(object->l_name), "liburing")) {
		object = object->l_next;
	}
	return object != NULL;
}

void *refit_find_dlopen(void)
{
	refit_next_dlopen = refit_symbol(RTLD_NEXT, "dlopen");
	return refit_next_dlopen;
}

void refit_find_next(void)
{
	if (all_found) {
		return;
	}
#define X(type, name, args)                                                    \
	*(void **)&refit_next.name = refit_symbol(RTLD_NEXT, #name);
	REFIT_NEXT(X)
	REFIT_NEXT_AIO(X)
	/* To find nothing takes long, and is the C library's first allocation:
	 * three system calls and two page faults. In a library of another name
	 * they are found when they are called. */
	if (may_have_liburing()) {
		REFIT_NEXT_URING(X)
	}
#undef X
	refit_next_syscall = refit_symbol(RTLD_NEXT, "syscall");
	refit_find_dlopen();
	refit_next.foreign_execvp =
		refit_next.execvp && refit_next.execvpe &&
		!refit_same_object(*(void **)&refit_next.execvp,
			     *(void **)&refit_next.execvpe);
	refit_forget_symbol_errors();
	all_found = 1;
}

/* A library that came by dlopen may have brought another along for itself alone
 * (RTLD_LOCAL): the name leads its calls to us, and RTLD_NEXT does not lead to
 * that library. */
static void *in_scope(void *scope, const char *name)
{
	void *found = refit_symbol(scope, name);
	return found && !refit_same_object(found, &refit_next) ? found : NULL;
}

void refit_find_later(const void *caller)
{
	refit_find_next();
	void *(*open)(const char *, int);
	*(void **)&open = refit_next_dlopen;
	Dl_info its;
	void *scope = NULL;
	if (open && dladdr && dladdr(caller, &its) && its.dli_fname) {
		/* Loads nothing. It is never closed: what is found stays. */
		scope = open(its.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	}
#define X(type, name, args)                                                    \
	if (!refit_next.name) {                                                \
		void *found = refit_symbol(RTLD_NEXT, #name);                  \
		if (!found && scope) {                                         \
			found = in_scope(scope, #name);                        \
		}                                                              \
		if (found) {                                                   \
			__atomic_store_n((void **)&refit_next.name, found,     \
					 __ATOMIC_RELAXED);                    \
		}                                                              \
	}
	REFIT_NEXT_AIO(X)
	REFIT_NEXT_URING(X)
#undef X
	refit_forget_symbol_errors();
}
