#include "beneath.h"

#include <link.h>

#include "symbol.h"

struct refit_beneath refit_beneath;

struct search {
	uintptr_t address;
	struct refit_object found;
};

static int holds(struct dl_phdr_info *object, size_t size, void *argument)
{
	(void)size;
	struct search *search = argument;
	struct refit_object all = {UINTPTR_MAX, 0};
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t begin = object->dlpi_addr + part->p_vaddr;
		if (part->p_type != PT_LOAD) {
			continue;
		}
		if (begin < all.begin) {
			all.begin = begin;
		}
		if (begin + part->p_memsz > all.end) {
			all.end = begin + part->p_memsz;
		}
	}
	if (all.begin >= all.end ||
	    !refit_is_in(all, (const void *)search->address)) {
		return 0;
	}
	search->found = all;
	return 1;
}

struct refit_object refit_object_of(const void *address)
{
	struct search search = {(uintptr_t)address, {0, 0}};
	if (address) {
		dl_iterate_phdr(holds, &search);
	}
	return search.found;
}

/* musl's malloc_usable_size tells what was requested (src/malloc/mallocng). */
static int is_musl(struct refit_object allocator)
{
	void *lookup = refit_symbol(RTLD_DEFAULT, "dlsym");
	return refit_is_in(allocator, lookup) &&
	       !refit_symbol(RTLD_DEFAULT, "gnu_get_libc_version");
}

void refit_find_beneath(void)
{
#define X(type, name, arguments)                                               \
	*(void **)&refit_beneath.name = refit_symbol(RTLD_NEXT, #name);
	REFIT_BENEATH(X)
#undef X
	struct refit_object allocator =
		refit_object_of(*(void **)&refit_beneath.malloc);
#define X(type, name, arguments)                                               \
	refit_beneath.name##_is_same = (unsigned char)refit_is_in(             \
		allocator, *(void **)&refit_beneath.name);
	REFIT_BENEATH(X)
#undef X
	refit_beneath.hides_usable =
		!refit_beneath.malloc_usable_size_is_same || is_musl(allocator);
	refit_beneath.is_glibc =
		refit_is_in(allocator,
			    refit_symbol(RTLD_DEFAULT, "gnu_get_libc_version"));
	refit_beneath.tells_usable = refit_beneath.hides_usable
					     ? REFIT_TELLS_NOTHING
					     : REFIT_TELLS_UNASKED;
}
