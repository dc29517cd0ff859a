/* The program notices nothing of a copy of it but the time of the fork, and of copying what it writes to meanwhile:
 *  - The copy has no exit signal: no SIGCHLD comes, and no wait(2) finds it but one with __WALL or __WCLONE.
 *  - No handlers run in it, and it is a process group of its own.
 *  - Its table of descriptors is new and empty (CLOSE_RANGE_UNSHARE): it closes none of the program's.
 *  - It ends with the process, when refit withdraws its request, and after 8 s. It is the first that the kernel ends for
 *    lack of memory, and leaves no core file.
 * It is made at calls of malloc and free. Where there are other threads, none of which is in the copy, one may hold a
 * lock that the copy then waits for without end. All that glibc's malloc_trim(3) changes is guarded by such locks, or
 * by atomic operations: the copy purges, or it ends before it has. Of other allocators that is not known. */
#include "purge.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "beneath.h"
#include "heap.h"
#include "own_seccomp_of_sync.h"
#include "symbol.h"

#define LONGEST_LIFE 8 /* seconds */
#define LONGEST_PURGE 1 /* seconds, with locks that another thread may hold */
#define CLEAR_SIGHAND 0x100000000ull /* CLONE_CLEAR_SIGHAND, Linux 5.5 */
#define CLONE3 435
#define CLOSE_RANGE 436
#define UNSHARE 2 /* CLOSE_RANGE_UNSHARE, Linux 5.9 */

uint32_t refit_purge_answered;

/* Of the last copy, until it was waited for. */
static long unreaped;

/* What each allocator gives back its free pages by; NULL where it has no such function. */
static const char *const functions[] = {"mallctl", "mi_collect",
					"MallocExtension_ReleaseFreeMemory",
					"malloc_trim", NULL};

/* Not 0: the allocator refused. */
static int purge(const char *name, void *function)
{
	union {
		void *address;
		int (*mallctl)(const char *, void *, size_t *, void *, size_t);
		void (*mi_collect)(_Bool);
		void (*release)(void);
		int (*malloc_trim)(size_t);
	} as = {function};
	if (name == functions[0]) {
		/* MALLCTL_ARENAS_ALL is 4096. */
		return as.mallctl("arena.4096.purge", NULL, NULL, NULL, 0);
	}
	if (name == functions[1]) {
		as.mi_collect(1);
	} else if (name == functions[2]) {
		as.release();
	} else {
		as.malloc_trim(0);
	}
	return 0;
}

/* ---- in the copy -------------------------------------------------------- */

static void set_state(struct refit_heap_purge *copy, uint32_t number,
		      enum refit_purge_state state)
{
	__atomic_store_n(&copy->state,
			 (uint64_t)number << 32 | (uint64_t)state,
			 __ATOMIC_RELEASE);
}

static void refuse(struct refit_heap_purge *copy, uint32_t number, const char *why)
{
	prim_copy(copy->why, why, sizeof copy->why);
	set_state(copy, number, REFIT_PURGE_REFUSED);
}

static __attribute__((noreturn)) void end(void)
{
	for (;;) {
		prim_syscall(SYS_exit_group, 0, 0, 0, 0);
	}
}

/* By SIGALRM. */
static int end_after(int seconds)
{
	struct itimerval life = {{0, 0}, {seconds, 0}};
	return prim_syscall(SYS_setitimer, ITIMER_REAL, &life, NULL, 0) == 0;
}

/* 0: it would not be apart from the program. */
static int set_apart(void)
{
	/* Those of the kernel. */
	struct {
		void (*handler)(int);
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} as_usual = {SIG_DFL, 0, NULL, 0};
	uint64_t all_but_alarm = ~(1ull << (SIGALRM - 1));
	/* 1: no core is written, nor given to a program (core(5)). */
	struct rlimit core = {1, 1};
	if (prim_syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0) != 0 ||
	    prim_syscall(SYS_rt_sigaction, SIGALRM, &as_usual, NULL, 8) != 0 ||
	    prim_syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all_but_alarm, NULL,
			 8) != 0 ||
	    !end_after(LONGEST_LIFE) ||
	    prim_syscall(CLOSE_RANGE, 0, ~0u, UNSHARE, 0) != 0 ||
	    prim_syscall(SYS_setpgid, 0, 0, 0, 0) != 0) {
		return 0;
	}
	prim_syscall(SYS_prlimit64, 0, RLIMIT_CORE, &core, NULL);
	prim_syscall(SYS_prctl, PR_SET_NAME, "refit-purge", 0, 0);
	long fd = prim_syscall(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj",
			       O_WRONLY | O_CLOEXEC, 0);
	if (fd >= 0) {
		prim_syscall(SYS_write, fd, "1000", 4, 0);
		prim_syscall(SYS_close, fd, 0, 0, 0);
	}
	return 1;
}

/* Whether refit still wants it, after a pause. */
static int is_asked(const struct refit_heap_purge *copy, uint32_t number)
{
	struct timespec pause = {0, 500000};
	prim_syscall(SYS_nanosleep, &pause, NULL, 0, 0);
	return __atomic_load_n(&copy->asked, __ATOMIC_ACQUIRE) == number;
}

static __attribute__((noreturn)) void live(struct refit_heap_purge *copy,
					   uint32_t number, int had_threads)
{
	/* Of what it allocates nothing is counted. */
	__atomic_store_n(&refit_heap_state, REFIT_HEAP_OFF, __ATOMIC_RELEASE);
	if (!set_apart()) {
		refuse(copy, number, "the kernel is too old (Linux 5.9)");
		end();
	}
	struct refit_object allocator =
		refit_object_of(*(void **)&refit_beneath.malloc);
	void *function = NULL;
	const char *const *name = functions;
	for (; *name; name++) {
		function = refit_symbol(RTLD_NEXT, *name);
		if (function && refit_is_in(allocator, function)) {
			break;
		}
	}
	if (!*name) {
		refuse(copy, number, "its allocator has no function for it");
		end();
	}
	copy->pid = (uint32_t)prim_syscall(SYS_getpid, 0, 0, 0, 0);
	set_state(copy, number, REFIT_PURGE_READY);
	while (__atomic_load_n(&copy->purge, __ATOMIC_ACQUIRE) != number) {
		if (!is_asked(copy, number)) {
			end();
		}
	}
	if (had_threads) {
		end_after(LONGEST_PURGE);
	}
	if (purge(*name, function) == 0) {
		set_state(copy, number, REFIT_PURGE_DONE);
	} else {
		refuse(copy, number, "its allocator refused");
	}
	while (is_asked(copy, number)) {
	}
	end();
}

/* ---- in the process ----------------------------------------------------- */

static void reap(void)
{
	if (unreaped > 0 &&
	    prim_syscall(SYS_wait4, unreaped, NULL, (long)(__WCLONE | WNOHANG),
			 0) != 0) {
		unreaped = 0;
	}
}

__attribute__((noinline)) void refit_purge_fork(struct refit_heap_purge *copy)
{
	uint32_t number = __atomic_load_n(&copy->asked, __ATOMIC_ACQUIRE);
	uint32_t before =
		__atomic_load_n(&refit_purge_answered, __ATOMIC_RELAXED);
	int is_filtered = refit_has_own_seccomp();
	/* A child of vfork(2) is not whom refit has asked. */
	if ((!is_filtered && !refit_heap_is_own()) || number == before ||
	    !__atomic_compare_exchange_n(&refit_purge_answered, &before, number,
					 0, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED)) {
		return;
	}
	if (is_filtered) {
		refuse(copy, number, "it has a seccomp filter of its own");
		return;
	}
	reap();
	if (number == 0) {
		return;
	}
	int has_threads = !refit_is_alone();
	if (has_threads && !refit_beneath.is_glibc) {
		refuse(copy, number, "it has several threads");
		return;
	}
	struct clone_args like_this = {
		.flags = CLEAR_SIGHAND | CLONE_FILES,
	};
	long pid = prim_syscall(CLONE3, &like_this, CLONE_ARGS_SIZE_VER0, 0, 0);
	if (pid == 0) {
		live(copy, number, has_threads);
	}
	if (pid < 0) {
		refuse(copy, number, "the kernel refused to fork it");
		return;
	}
	unreaped = pid;
}
