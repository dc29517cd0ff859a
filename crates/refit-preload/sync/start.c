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
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>

#include "decision.h"
#include "filter.h"
#include "next.h"
#include "own_seccomp.h"
#include "session_page.h"
#include "state.h"

/* As in next.c. */
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");

/* musl has none. */
__asm__(".symver dladdr1,dladdr1@GLIBC_2.3.3");
extern int dladdr1(const void *, Dl_info *, void **, int)
	__attribute__((weak));

extern char **environ;

/* fork handlers: the name differs between libcs, so both are weak. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void),
			     void *) __attribute__((weak));
extern int pthread_atfork(void (*)(void), void (*)(void), void (*)(void))
	__attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));
/* /proc/self/exe, so that a script matches its interpreter. In a chroot without
 * /proc the kernel's AT_EXECFN will do, unless that is a script's name. */
static void find_executable(char *to, size_t size)
{
	long n = prim_syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", to,
			      size - 1);
	if (n > 0) {
		to[n] = '\0';
		return;
	}
	to[0] = '\0';
	const char *name = (const char *)getauxval(AT_EXECFN);
	if (!name) {
		return;
	}
	char magic[4] = "";
	long fd = prim_syscall(SYS_openat, AT_FDCWD, name,
			       O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	if (fd >= 0) {
		prim_syscall(SYS_read, fd, magic, 4, 0);
		prim_syscall(SYS_close, fd, 0, 0, 0);
	}
	if (magic[0] == 0x7f && magic[1] == 'E') {
		prim_copy(to, name, size);
	}
}

struct owner_search {
	uintptr_t address;
	struct refit_image *image;
	int is_program;
};

static int is_owner(struct dl_phdr_info *object, size_t size, void *argument)
{
	(void)size;
	struct owner_search *search = argument;
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t start = object->dlpi_addr + part->p_vaddr;
		if (part->p_type == PT_LOAD && search->address >= start &&
		    search->address - start < part->p_memsz) {
			struct refit_image *image = search->image;
			/* The program itself has no name here. */
			search->is_program = !object->dlpi_name[0];
			const char *name = search->is_program
						   ? image->executable
						   : object->dlpi_name;
			prim_copy(image->malloc_object, name,
				  sizeof image->malloc_object);
			return 1;
		}
	}
	return 0;
}

/* An executable at a fixed address that takes the address of malloc has this
 * function's address in its own linkage table (ELF x86-64 psABI, "Function
 * Addresses"): its symbol has a value and is still undefined. */
static int is_undefined(void *address)
{
	Dl_info about;
	const ElfW(Sym) *symbol = NULL;
	return dladdr1 &&
	       dladdr1(address, &about, (void **)&symbol, RTLD_DL_SYMENT) &&
	       symbol && symbol->st_shndx == SHN_UNDEF;
}

/* Not by dladdr, which reads every symbol of the C library: 0.1 ms for each
 * program that is started. */
static void find_malloc(struct refit_image *image)
{
	void *address = dlsym(RTLD_DEFAULT, "malloc");
	struct owner_search search = {(uintptr_t)address, image, 0};
	if (!address || !dl_iterate_phdr(is_owner, &search) ||
	    !search.is_program || !is_undefined(address)) {
		return;
	}
	/* All other objects come after us. */
	search.address = (uintptr_t)dlsym(RTLD_NEXT, "malloc");
	dl_iterate_phdr(is_owner, &search);
}

/* Under a filter that answers every sync with 0 (systemd-nspawn
 * --suppress-sync) a probe says nothing. */
static int probes_are_false(void)
{
	return (refit.decision == REFIT_DECISION_OFF || refit.by_path) &&
	       prim_syscall(SYS_sync_file_range, -1, 0, 0, 0) != -EBADF;
}

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
	image->flags =
		(refit.decision == REFIT_DECISION_OFF ? REFIT_IMAGE_SYNC_OFF
						      : 0u) |
		(refit.odirect_off ? REFIT_IMAGE_ODIRECT_OFF : 0u) |
		(refit.policy->filter_length && !refit_has_filter()
			 ? REFIT_IMAGE_UNFILTERED
			 : 0u) |
		(refit.policy->disk.event_ring >= 0 && !refit.event_ring
			 ? REFIT_IMAGE_NO_EVENT_RING
			 : 0u);
	prim_copy(image->executable, exe, sizeof image->executable);
	find_malloc(image);
	image->matched = refit.matched;
	image->version = REFIT_VERSION;
	__atomic_store_n(&image->magic, REFIT_MAGIC, __ATOMIC_RELEASE);
	refit.image = image;
	const char *answer = dlsym(RTLD_DEFAULT, "__libc_single_threaded");
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

__attribute__((constructor)) static void construct(void)
{
	refit_find_next();
	const char *session = prim_env(environ, "REFIT_SESSION=");
	if (!session || session[0] != '/') {
		return;
	}
	if (refit_inherits_seccomp(session)) {
		return;
	}
	refit.policy = refit_map_policy(session);
	if (!refit.policy) {
		return;
	}
	char exe[256];
	find_executable(exe, sizeof exe);
	prim_copy(refit.name, prim_basename(exe), sizeof refit.name);
	refit.event_ring = refit_map_event_ring(refit.policy->disk.event_ring);
	if (refit.event_ring) {
		refit.flushes = &refit.event_ring->flushes;
	}
	refit.traces = refit.event_ring &&
		       refit.policy->flags & REFIT_POLICY_TRACE;
	refit_decide_for_image(prim_basename(exe));
	if (refit.policy->flags & REFIT_POLICY_COUNT) {
		start_to_count(session, exe);
	}
	refit.own_seccomp = probes_are_false();
}
