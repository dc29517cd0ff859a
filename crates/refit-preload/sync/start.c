/* The preload of refit: swaps durability calls of an unmodified program.
 *
 * Rules that every file here keeps:
 *  - When anything is unsure the program gets the real call.
 *  - No allocation, stdio, locks, threads or thread-local storage. Everything
 *    is mapped in the constructor: later the program may chroot, drop its
 *    privileges, close every descriptor or clear its environment.
 *  - No dlsym inside an intercepted call. Functions that chain use pointers
 *    found in the constructor, and a plain system call before that: other
 *    libraries' constructors may run first (jemalloc opens files in its own).
 *    next.h names the exceptions.
 *  - errno is untouched on success; on failure it is exactly the kernel's.
 *  - Shared memory is written with relaxed atomics only: threads share a slot,
 *    and a vfork child writes its parent's.
 */
#include <fcntl.h>

#include "clock.h"
#include "decision.h"
#include "executable.h"
#include "filter.h"
#include "next.h"
#include "others.h"
#include "own_seccomp.h"
#include "session_page.h"
#include "slot.h"
#include "symbol.h"

extern char **environ;

/* fork handlers: the name differs between libcs, so both are weak. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void),
			     void *) __attribute__((weak));
extern int pthread_atfork(void (*)(void), void (*)(void), void (*)(void))
	__attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

/* The heap library, where it was preloaded too, counts above the allocator. */
#define OF_HEAP "refit_heap_malloc_beneath"

static void find_malloc(struct refit_image *image)
{
	const struct link_map *object = refit_objects();
	while (object && (!refit_symbol_of(object, "malloc") ||
			  refit_symbol_of(object, OF_HEAP))) {
		object = object->l_next;
	}
	refit_name_object(object, image->executable, image->malloc_object,
			  sizeof image->malloc_object);
}

/* The end of the path of what has definitions of our functions too. */
static char other_object[sizeof((struct refit_image *)NULL)->other_object];

static void start_to_count(const char *session, const char *exe)
{
	struct refit_image *image = refit_map_image(session);
	if (!image) {
		return;
	}
	struct refit_mark *mark = refit_map_mark();
	if (mark) {
		refit.mark = mark;
	}
	image->pid = (uint32_t)prim_syscall(SYS_getpid, 0, 0, 0, 0);
	refit.filtered = refit.policy->filter_length && refit_has_filter();
	image->flags =
		(refit.decision == REFIT_DECISION_OFF ? REFIT_IMAGE_SYNC_OFF
						      : 0u) |
		(refit.odirect_off ? REFIT_IMAGE_ODIRECT_OFF : 0u) |
		(refit.filtered ? REFIT_IMAGE_FILTERED
		 : refit.policy->filter_length ? REFIT_IMAGE_UNFILTERED
					       : 0u) |
		(refit.policy->disk.event_ring >= 0 && !refit.event_ring
			 ? REFIT_IMAGE_NO_EVENT_RING
			 : 0u);
	prim_copy(image->executable, exe, sizeof image->executable);
	find_malloc(image);
	image->others = refit_others.bits;
	prim_copy(image->other_object, other_object, sizeof image->other_object);
	image->matched = refit.matched;
	image->version = REFIT_VERSION;
	__atomic_store_n(&image->magic, REFIT_MAGIC, __ATOMIC_RELEASE);
	refit.image = image;
	const char *answer = refit_symbol(RTLD_DEFAULT, "__libc_single_threaded");
	if (answer) {
		refit.single_threaded = answer;
	}
	refit.owner = (uint32_t)prim_syscall(SYS_geteuid, 0, 0, 0, 0);
	refit_take_slot(0);
	if (__register_atfork) {
		__register_atfork(NULL, NULL, refit_in_forked_child,
				  __dso_handle);
	} else if (pthread_atfork) {
		pthread_atfork(NULL, NULL, refit_in_forked_child);
	}
}

static const char *session_directory(void)
{
	const char *session = prim_env(environ, "REFIT_SESSION=");
	return session && session[0] == '/' ? session : NULL;
}

/* Looked at once: it takes 18 us, and an allocation asks again while the program may
 * be changing its environment. Not before the C library is ready: until then there is
 * no environment. */
static int inherits_seccomp(void)
{
	static int looked, inherits;
	if (!looked && environ) {
		const char *session = session_directory();
		if (session) {
			refit_find_next();
			inherits = refit_inherits_seccomp(session);
		}
		looked = 1;
	}
	return inherits;
}

/* For the heap library, whose constructor may run before ours. */
EXPORT int refit_sync_has_own_seccomp(void);

int refit_sync_has_own_seccomp(void)
{
	return refit_beneath_own_seccomp() || inherits_seccomp();
}

/* Whether the program is asked nothing before its first intercepted call: then it
 * is soon enough to look for filters there. */
static int asks_nothing(void)
{
	return !(refit.policy->flags &
		 (REFIT_POLICY_COUNT | REFIT_POLICY_TRACE)) &&
	       refit.policy->disk.event_ring < 0 && !refit_has_executables() &&
	       refit_starts_in_our_root();
}

__attribute__((constructor)) static void construct(void)
{
	refit_find_clock();
	refit_find_next();
	refit_find_others(other_object, sizeof other_object);
	const char *session = session_directory();
	int later = refit_may_look_later();
	if (!session || (!later && inherits_seccomp())) {
		return;
	}
	const struct refit_policy *policy = refit_map_policy(session);
	refit.policy = policy;
	later = later && policy && asks_nothing();
	if (!policy || (!later && inherits_seccomp())) {
		refit.policy = NULL;
		return;
	}
	char exe[256] = "";
	if (policy->flags & (REFIT_POLICY_COUNT | REFIT_POLICY_TRACE) ||
	    refit_has_executables()) {
		refit_find_executable(exe, sizeof exe);
	}
	prim_copy(refit.name, prim_basename(exe), sizeof refit.name);
	refit.event_ring = refit_map_event_ring(policy->disk.event_ring);
	if (refit.event_ring) {
		refit.flushes = &refit.event_ring->flushes;
	}
	refit.traces = refit.event_ring && policy->flags & REFIT_POLICY_TRACE;
	refit_decide_for_image(prim_basename(exe));
	if (policy->flags & REFIT_POLICY_COUNT) {
		start_to_count(session, exe);
	}
	if (later) {
		refit_look_later();
	} else {
		refit.own_seccomp = refit_probes_are_false();
	}
}
