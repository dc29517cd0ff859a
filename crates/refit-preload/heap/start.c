/* When the library is loaded: makes its file, or switches itself off. */
#include <sys/mman.h>

#include "address_space.h"
#include "beneath.h"
#include "counters.h"
#include "early.h"
#include "executable.h"
#include "heap.h"
#include "own_seccomp_of_sync.h"
#include "samples.h"
#include "session_file.h"
#include "shadow.h"
#include "symbol.h"
#include "wiped_page.h"

_Static_assert(sizeof(struct refit_heap_mark) <= REFIT_WIPED_PAGE,
	       "the mark has one page");

extern char **environ;

/* The header, and of the first process its own page, slot 0 and the slot of its
 * first thread: what every image needs. */
#define ALLOCATED_AT_START ((size_t)4 * REFIT_HEAP_PAGE)

static int set_state(int state)
{
	return __atomic_exchange_n(&refit_heap_state, state, __ATOMIC_ACQ_REL);
}

/* Whether the program's calls come to us: its own malloc would go before ours. The
 * address alone does not tell, it may be that of a stub in the program. */
static int malloc_is_ours(void)
{
	void *(*serves)(size_t);
	void (*takes_back)(void *);
	*(void **)&serves = refit_symbol(RTLD_DEFAULT, "malloc");
	*(void **)&takes_back = refit_symbol(RTLD_DEFAULT, "free");
	int before = set_state(REFIT_HEAP_FINDING);
	void *block = serves ? serves(1) : NULL;
	int is_ours = block && refit_is_early(block);
	if (block && !is_ours && takes_back) {
		takes_back(block);
	}
	set_state(before);
	return is_ours;
}

/* Why this image is not counted, as a flag; 0: it is. */
static uint32_t reason_against(void)
{
	if (!malloc_is_ours()) {
		return REFIT_HEAP_OTHER_MALLOC;
	}
	return __atomic_load_n(&refit_heap_state, __ATOMIC_RELAXED) <
			       REFIT_HEAP_COUNTING &&
		       refit_address_space() != UINT64_MAX
		       ? REFIT_HEAP_LIMITED
		       : 0;
}

/* Whether the allocator has C++ operators. */
static int allocator_has_new(void)
{
	return refit_is_in(refit_object_of(*(void **)&refit_beneath.malloc),
			   refit_symbol(RTLD_DEFAULT, "_Znwm"));
}

/* What is not seen of an image that is counted. */
static uint32_t gaps(void)
{
	uint32_t flags = __atomic_load_n(&refit_heap_state, __ATOMIC_RELAXED) ==
					 REFIT_HEAP_TABLELESS
				 ? REFIT_HEAP_NO_TABLE
				 : 0;
	if (refit_beneath.hides_usable) {
		flags |= REFIT_HEAP_NO_USABLE;
	}
	if (allocator_has_new()) {
		flags |= REFIT_HEAP_NEW_UNSEEN;
	}
	return flags;
}

static uint32_t start_to_count(struct refit_heap_file *file)
{
	uint32_t reason = reason_against();
	if (reason) {
		return reason;
	}
	struct refit_heap_mark *mark = refit_map_wiped_page();
	if (!mark) {
		return REFIT_HEAP_OLD_KERNEL;
	}
	refit_heap_watch_threads();
	refit_heap_publish(file, mark);
	if (refit_heap.samples) {
		refit_samples_begin();
	}
	return gaps();
}

static void unmap_file(struct refit_heap_file *file)
{
	if (refit_heap.small_in_file) {
		prim_syscall(SYS_munmap, refit_heap.small_in_file,
			     REFIT_SMALL_IN_FILE, 0, 0);
	}
	prim_syscall(SYS_munmap, file,
		     refit_processes_size(refit_heap.processes), 0, 0);
	if (refit_heap.samples) {
		prim_syscall(SYS_munmap, refit_heap.samples,
			     refit_places_size(refit_heap.places), 0, 0);
	}
}

/* All of it where the address space is not limited, and nothing but the header where
 * the image is not counted. */
static struct refit_heap_file *map_file(const char *session)
{
	struct refit_heap_room room = {REFIT_HEAP_PROCESSES,
				       REFIT_HEAP_SAMPLES};
	switch (__atomic_load_n(&refit_heap_state, __ATOMIC_RELAXED)) {
	case REFIT_HEAP_COUNTING:
		break;
	case REFIT_HEAP_TABLELESS:
		room = refit_heap_room(refit_address_space());
		break;
	default:
		room = (struct refit_heap_room){0, 0};
	}
	long fd = refit_make_session_file(
		session, sizeof(struct refit_heap_file), ALLOCATED_AT_START);
	if (fd < 0) {
		return NULL;
	}
	struct refit_heap_file *file =
		refit_map_part(fd, 0, refit_processes_size(room.processes));
	refit_heap.processes = room.processes;
	if (file && room.places) {
		refit_heap.samples = refit_map_part(
			fd, offsetof(struct refit_heap_file, samples),
			refit_places_size(room.places));
		refit_heap.places = refit_heap.samples ? room.places : 0;
	}
	if (file && refit_heap.small) {
		refit_heap.small_in_file = refit_map_part(
			fd, offsetof(struct refit_heap_file, small_sizes),
			REFIT_SMALL_IN_FILE);
	}
	prim_syscall(SYS_close, fd, 0, 0, 0);
	return file;
}

__attribute__((constructor)) static void construct(void)
{
	refit_heap_begin();
	const char *session = prim_env(environ, "REFIT_SESSION=");
	struct refit_heap_file *file =
		session && session[0] == '/' && !refit_has_own_seccomp()
			? map_file(session)
			: NULL;
	if (!file) {
		set_state(REFIT_HEAP_OFF);
		return;
	}
	struct refit_heap_header *header = &file->header;
	refit_find_executable(header->executable, sizeof header->executable);
	refit_name_object(refit_definition(RTLD_NEXT, "malloc").object,
			  header->executable, header->malloc_object,
			  sizeof header->malloc_object);
	header->shadow = (uintptr_t)refit_shadow_top;
	header->flags = start_to_count(file);
	__atomic_store_n(&header->magic, REFIT_HEAP_MAGIC, __ATOMIC_RELEASE);
	if (!refit_heap.file) {
		set_state(REFIT_HEAP_OFF);
		unmap_file(file);
	}
}
