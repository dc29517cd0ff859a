#include "others.h"

#include "session.h"
#include "symbol.h"

struct refit_others refit_others;

/* Every C library has it. Before glibc 2.34 libpthread has it too, and fsync. */
#define OF_C_LIBRARY "__errno_location"

/* Another name for one of those that are passed on: the exec functions end in it. */
static int passes_anyway(const struct link_map *object, enum refit_other which)
{
	switch (which) {
	case REFIT_OTHER_io_submit:
		/* Its own is the system call, as ours is. */
		return prim_after(prim_basename(object->l_name), "libaio") !=
		       NULL;
	case REFIT_OTHER_execv:
	case REFIT_OTHER_execl:
	case REFIT_OTHER_execlp:
	case REFIT_OTHER_execle:
		return refit_symbol_of(object, "execve") != NULL;
	default:
		return 0;
	}
}

/* Adds the definitions of the object that are still missing; *seen has the bits of
 * those that an object before it has. */
static void add(const struct link_map *object, uint64_t *seen)
{
	int is_c_library = refit_symbol_of(object, OF_C_LIBRARY) != NULL;
	void *found[REFIT_OTHER_COUNT] = {NULL};
	static const char *const names[] = {
#define X(name, passes) #name,
		REFIT_OTHERS(X)
#undef X
	};
	for (unsigned i = 0; i < REFIT_OTHER_COUNT; i++) {
		uint64_t bit = 1ull << i;
		void *its = *seen & bit ? NULL
					: refit_symbol_of(object, names[i]);
		if (!its) {
			continue;
		}
		*seen |= bit;
		if (!is_c_library && !passes_anyway(object, i)) {
			refit_others.bits |= bit;
			found[i] = its;
		}
	}
#define SET(name)                                                              \
	if (found[REFIT_OTHER_##name]) {                                       \
		*(void **)&refit_others.name = found[REFIT_OTHER_##name];      \
	}
	SET(fsync)
	SET(fdatasync)
	SET(sync)
	SET(syncfs)
	SET(sync_file_range)
	SET(msync)
#undef SET
}

void refit_find_others(char *name, size_t size)
{
	const struct link_map *object = refit_objects();
	uint64_t seen = 0;
	while (object && !refit_is_us(object)) {
		object = object->l_next;
	}
	for (object = object ? object->l_next : NULL; object;
	     object = object->l_next) {
		uint64_t before = refit_others.bits;
		add(object, &seen);
		if (!before && refit_others.bits) {
			size_t n = prim_length(object->l_name);
			prim_copy(name,
				  n < size ? object->l_name
					   : object->l_name + (n - size + 1),
				  size);
		}
	}
}
