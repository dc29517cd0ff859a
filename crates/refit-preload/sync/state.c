/* The preload of refit: swaps durability calls beneath an unmodified program.
 *
 * Rules that every file here keeps:
 *  - When anything is unsure the program gets the real call.
 *  - No allocation, stdio, locks, threads or thread-local storage. Everything
 *    is mapped in the constructor: later the program may chroot, drop its
 *    privileges, close every descriptor or clear its environment.
 *  - No dlsym inside an intercepted call. Functions that chain use pointers
 *    found in the constructor, and a plain system call before that: other
 *    libraries' constructors may run first (jemalloc opens files in its own).
 *    Only what has no system call of its own may look again (NEXT).
 *  - errno is untouched on success; on failure it is exactly the kernel's.
 *  - Shared memory is written with relaxed atomics only: threads share a slot,
 *    and a vfork child writes its parent's.
 */
#define _GNU_SOURCE
#include "decision.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <time.h>

/* glibc 2.34 moved these from libdl into libc under a new version; the old one
 * is there in every glibc, and musl does not look at versions. */
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver dladdr,dladdr@GLIBC_2.2.5");

extern char **environ;

/* fork handlers: the name differs between libcs, so both are weak. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void),
			     void *) __attribute__((weak));
extern int pthread_atfork(void (*)(void), void (*)(void), void (*)(void))
	__attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

static struct refit_mark mark_without_wipe;

static struct refit_flushes own_flushes;

struct refit_state refit = {.mark = &mark_without_wipe,
			    .flushes = &own_flushes};
void *refit_next_syscall;
void *refit_next_dlopen;

uint64_t refit_clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- slots ------------------------------------------------------------- */

static void fold(struct refit_slot *dead)
{
	struct refit_slot *total = &refit.image->slots[0];
	for (int i = 0; i < REFIT_CALL_COUNT; i++) {
		uint64_t *from = &dead->calls[i].seen;
		uint64_t *to = &total->calls[i].seen;
		for (size_t f = 0;
		     f < sizeof dead->calls[i] / sizeof(uint64_t); f++) {
			refit_add(&to[f], __atomic_exchange_n(&from[f], 0,
							      __ATOMIC_RELAXED));
		}
	}
}

/* Takes a free slot, or one whose process is dead; when all are alive, shares
 * one: sums stay right, only the division between processes is lost. */
static struct refit_slot *take_slot(uint32_t forked)
{
	struct refit_image *image = refit.image;
	uint32_t pid = (uint32_t)prim_syscall(SYS_getpid, 0, 0, 0, 0);
	struct refit_slot *mine = NULL;
	for (int i = 1; i < REFIT_SLOTS && !mine; i++) {
		struct refit_slot *slot = &image->slots[i];
		uint32_t owner = __atomic_load_n(&slot->pid, __ATOMIC_RELAXED);
		/* A filter of the program's own may kill for the question. */
		int dead = owner != 0 && !refit.own_seccomp &&
			   prim_syscall(SYS_kill, owner, 0, 0, 0) == -ESRCH;
		if ((owner == 0 || dead) &&
		    __atomic_compare_exchange_n(&slot->pid, &owner, pid, 0,
						__ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			mine = slot;
			if (dead) {
				fold(slot);
			}
		}
	}
	if (!mine) {
		mine = &image->slots[1 + pid % (REFIT_SLOTS - 1)];
		refit_flag(REFIT_IMAGE_SHARED_SLOT);
	}
	refit_add(&image->forked, forked);
	refit.mark->pid = pid;
	refit.mark->forked = forked;
	refit.mark->slot = mine;
	return mine;
}

struct refit_slot *refit_take_slot(void)
{
	return take_slot(1);
}

static void in_forked_child(void)
{
	if (refit.image) {
		refit.mark->slot = NULL;
		refit_take_slot();
	}
}

/* ---- mapping ----------------------------------------------------------- */

static void *map(long fd, size_t size, int protection)
{
	long at = prim_syscall6(SYS_mmap, 0, (long)size, protection,
				fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED,
				fd, 0);
	return (unsigned long)at > -4096ul ? NULL : (void *)at;
}

static const struct refit_policy *map_policy(const char *session)
{
	char path[512];
	char *end = prim_copy(path, session, sizeof path - 8);
	prim_copy(end, "/policy", 8);
	long fd = prim_syscall(SYS_openat, AT_FDCWD, path,
			       O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
	if (fd < 0) {
		return NULL;
	}
	struct stat st;
	const struct refit_policy *policy = NULL;
	uint32_t me = (uint32_t)prim_syscall(SYS_geteuid, 0, 0, 0, 0);
	/* A page that another user could truncate would kill us with SIGBUS. */
	if (prim_syscall(SYS_fstat, fd, &st, 0, 0) == 0 &&
	    S_ISREG(st.st_mode) && (st.st_uid == 0 || st.st_uid == me) &&
	    st.st_size == sizeof *policy) {
		policy = map(fd, sizeof *policy, PROT_READ);
	}
	prim_syscall(SYS_close, fd, 0, 0, 0);
	if (policy && (policy->magic != REFIT_MAGIC ||
		       policy->version != REFIT_VERSION)) {
		prim_syscall(SYS_munmap, policy, sizeof *policy, 0, 0);
		return NULL;
	}
	return policy;
}

static char *put_hex(char *to, uint64_t n)
{
	for (int shift = 60; shift >= 0; shift -= 4) {
		*to++ = "0123456789abcdef"[(n >> shift) & 15];
	}
	return to;
}

/* The image file: a name that nobody can guess or take first, no other user's
 * to open, and every page allocated now, so that a full file system can never
 * become a SIGBUS in the program. */
static struct refit_image *map_image(const char *session)
{
	struct rlimit most;
	/* Beyond it fallocate would raise SIGXFSZ, which kills. */
	if (prim_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &most) < 0 ||
	    most.rlim_cur < sizeof(struct refit_image)) {
		return NULL;
	}
	char path[512];
	uint64_t random[2] = {0, 0};
	if (prim_syscall(SYS_getrandom, random, sizeof random,
			 1 /* GRND_NONBLOCK */, 0) != sizeof random) {
		random[0] = refit_clock_ns();
		random[1] = (uint64_t)(uintptr_t)path;
	}
	char *end = prim_copy(path, session, sizeof path - 64);
	end = prim_copy(end, "/images/", 9);
	end = put_hex(end, random[0]);
	end = put_hex(end, random[1]);
	*end = '\0';
	long fd = prim_syscall(SYS_openat, AT_FDCWD, path,
			       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW |
				       O_CLOEXEC,
			       0600);
	if (fd < 0) {
		return NULL;
	}
	struct refit_image *image = NULL;
	if (prim_syscall(SYS_fallocate, fd, 0, 0, sizeof *image) == 0) {
		image = map(fd, sizeof *image, PROT_READ | PROT_WRITE);
	}
	if (!image) {
		prim_syscall(SYS_unlinkat, AT_FDCWD, path, 0, 0);
	}
	prim_syscall(SYS_close, fd, 0, 0, 0);
	return image;
}

/* In a namespace of its own, or as another user, a process has none. */
static struct refit_event_ring *map_event_ring(void)
{
	int id = refit.policy->disk.event_ring;
	if (id < 0) {
		return NULL;
	}
	long at = prim_syscall(SYS_shmat, id, NULL, 0, 0);
	struct shmid_ds about;
	if ((unsigned long)at > -4096ul) {
		return NULL;
	}
	/* The number may mean another segment there (ipc_namespaces(7)). */
	if (prim_syscall(SYS_shmctl, id, IPC_STAT, &about, 0) != 0 ||
	    about.shm_segsz != sizeof(struct refit_event_ring)) {
		prim_syscall(SYS_shmdt, at, 0, 0, 0);
		return NULL;
	}
	return (struct refit_event_ring *)at;
}

static void map_slot_marker(void)
{
	void *page = map(-1, 4096, PROT_READ | PROT_WRITE);
	if (!page) {
		return;
	}
	/* Linux 4.14; without it the fork handler alone clears the marker. */
	prim_syscall(SYS_madvise, page, 4096, 18 /* MADV_WIPEONFORK */, 0);
	refit.mark = page;
}

/* ---- who am I ---------------------------------------------------------- */

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
			const char *name = object->dlpi_name[0]
						   ? object->dlpi_name
						   : image->executable;
			prim_copy(image->malloc_object, name,
				  sizeof image->malloc_object);
			return 1;
		}
	}
	return 0;
}

/* Not by dladdr, which reads every symbol of the C library: 0.1 ms for each
 * program that is started. */
static void find_malloc(struct refit_image *image)
{
	struct owner_search search = {
		(uintptr_t)dlsym(RTLD_DEFAULT, "malloc"), image};
	if (search.address) {
		dl_iterate_phdr(is_owner, &search);
	}
}

void *refit_find_dlopen(void)
{
	refit_next_dlopen = dlsym(RTLD_NEXT, "dlopen");
	return refit_next_dlopen;
}

void *refit_find_in_scope_of(const void *caller, const char *name)
{
	void *(*open)(const char *, int);
	*(void **)&open = refit_next_dlopen;
	Dl_info its, found_in, ours;
	if (!open || !dladdr(caller, &its) || !its.dli_fname) {
		return NULL;
	}
	/* Neither opens nor, since it is never closed, unloads anything. */
	void *scope = open(its.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	void *found = scope ? dlsym(scope, name) : NULL;
	if (!found || !dladdr(found, &found_in) || !dladdr(&refit, &ours) ||
	    found_in.dli_fbase == ours.dli_fbase) {
		return NULL;
	}
	return found;
}

void refit_saw_deepbind(void)
{
	refit_flag(REFIT_IMAGE_DEEPBIND);
}

void refit_find_next(void)
{
#define X(type, name, args)                                                    \
	*(void **)&refit.next.name = dlsym(RTLD_NEXT, #name);
	REFIT_NEXT(X)
#undef X
	refit_next_syscall = dlsym(RTLD_NEXT, "syscall");
	refit_find_dlopen();
	Dl_info execvp, execvpe;
	refit.own_execvp =
		refit.next.execvp && refit.next.execvpe &&
		dladdr(*(void **)&refit.next.execvp, &execvp) &&
		dladdr(*(void **)&refit.next.execvpe, &execvpe) &&
		execvp.dli_fbase != execvpe.dli_fbase;
}

__attribute__((constructor)) static void construct(void)
{
	refit_find_next();
	const char *session = prim_env(environ, "REFIT_SESSION=");
	if (!session || session[0] != '/') {
		return;
	}
	refit.policy = map_policy(session);
	if (!refit.policy) {
		return;
	}
	char exe[256];
	find_executable(exe, sizeof exe);
	prim_copy(refit.name, prim_basename(exe), sizeof refit.name);
	refit.event_ring = map_event_ring();
	if (refit.event_ring) {
		refit.flushes = &refit.event_ring->flushes;
	}
	refit.trace = refit.event_ring && refit.policy->flags & REFIT_POLICY_TRACE;
	refit_decide_for_image(prim_basename(exe));
	/* Under a filter that answers everything with 0 (systemd-nspawn
	 * --suppress-sync) a probe says nothing. */
	if ((refit.decision == REFIT_DECISION_OFF || refit.by_path) &&
	    prim_syscall(SYS_sync_file_range, -1, 0, 0, 0) != -EBADF) {
		refit.own_seccomp = 1;
	}
	struct refit_image *image =
		refit.policy->flags & REFIT_POLICY_COUNT ? map_image(session)
							 : NULL;
	if (!image) {
		return;
	}
	map_slot_marker();
	image->pid = (uint32_t)prim_syscall(SYS_getpid, 0, 0, 0, 0);
	image->flags =
		(refit.decision == REFIT_DECISION_OFF ? REFIT_IMAGE_SYNC_OFF : 0u) |
		(refit.odirect_off ? REFIT_IMAGE_ODIRECT_OFF : 0u) |
		(refit.policy->disk.event_ring >= 0 && !refit.event_ring
			 ? REFIT_IMAGE_NO_EVENT_RING
			 : 0u);
	prim_copy(image->executable, exe, sizeof image->executable);
	find_malloc(image);
	image->matched = refit.matched;
	image->version = REFIT_VERSION;
	__atomic_store_n(&image->magic, REFIT_MAGIC, __ATOMIC_RELEASE);
	refit.image = image;
	refit.owner = (uint32_t)prim_syscall(SYS_geteuid, 0, 0, 0, 0);
	take_slot(0);
	if (__register_atfork) {
		__register_atfork(NULL, NULL, in_forked_child, __dso_handle);
	} else if (pthread_atfork) {
		pthread_atfork(NULL, NULL, in_forked_child);
	}
}
