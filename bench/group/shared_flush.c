/* A trial of group commit across processes: fsync and fdatasync wait for one syncfs that serves all of them.
 *
 * LD_PRELOAD, with REFIT_GROUP=FILE (64 bytes of zeros, shared) and REFIT_GROUP_HOLD_US: how long a leader waits at
 * most for as many callers as the last flush served, and never longer than a flush takes. For one file system at a
 * time. REFIT_GROUP_EARLY=1 is the mistake that the bench must see: a caller is released by a flush that had begun
 * before it came.
 *
 * The flushes are numbered. A caller needs one with a number that had not begun when it came; whoever finds no leader
 * leads. It is real at once for a caller who turns out to be alone, for what is no regular file, after a failed flush,
 * and after LIMIT_NS with a leader that says nothing (killed, for instance). After a good flush each caller collects
 * the error of its own file by sync_file_range, on its own descriptor.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_NS 2000000000u

static struct group {
	uint64_t begun;	     /* number of the last flush that has begun */
	uint64_t good;	     /* highest number of one that has ended well */
	uint64_t flush_ns;   /* how long they take, smoothed */
	uint64_t flushes;    /* for the bench: shared ones, and calls that they served */
	uint64_t served;
	uint32_t ended;	     /* futex: some flush has ended */
	uint32_t leading;    /* somebody is the leader */
	uint32_t waiting;    /* futex: who came since the last flush began */
	uint32_t expected;   /* how many the last one served */
} *group;
static uint64_t hold_ns;
static int early;

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void futex_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	syscall(SYS_futex, word, FUTEX_WAIT, value, &t, NULL, 0);
}

static void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void leave_the_lead(void)
{
	__atomic_store_n(&group->leading, 0, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&group->ended, 1, __ATOMIC_SEQ_CST);
	futex_wake(&group->ended);
}

static void gather(void)
{
	uint64_t longest = group->flush_ns < hold_ns ? group->flush_ns : hold_ns;
	uint64_t until = now_ns() + longest, now;
	uint32_t waiting;
	while ((waiting = __atomic_load_n(&group->waiting, __ATOMIC_SEQ_CST)) < group->expected &&
	       (now = now_ns()) < until) {
		futex_wait(&group->waiting, waiting, until - now);
	}
}

enum outcome { COVERED, OWN, OWN_DONE };

/* Makes one flush for all who wait, or its own call when nobody else does; its result in *result, and errno. */
static enum outcome lead(int fd, long call, int *result)
{
	gather();
	uint32_t callers = __atomic_exchange_n(&group->waiting, 0, __ATOMIC_SEQ_CST);
	group->expected = callers;
	if (callers <= 1) { /* who comes meanwhile gathers behind it */
		*result = (int)syscall(call, fd);
		int error = errno;
		leave_the_lead();
		errno = error;
		return OWN_DONE;
	}
	uint64_t number = __atomic_add_fetch(&group->begun, 1, __ATOMIC_SEQ_CST);
	uint64_t began = now_ns();
	int good = syscall(SYS_syncfs, fd) == 0;
	uint64_t took = now_ns() - began;
	group->flush_ns = group->flush_ns ? (7 * group->flush_ns + took) / 8 : took;
	group->flushes++;
	if (good) { /* the only leader, but for one that has been silent for long */
		uint64_t seen = __atomic_load_n(&group->good, __ATOMIC_SEQ_CST);
		while (seen < number && !__atomic_compare_exchange_n(&group->good, &seen, number, 0,
								     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
		}
	}
	leave_the_lead();
	return good ? COVERED : OWN;
}

/* Waits for a shared flush that covers all that was written before the call. */
static enum outcome join(int fd, long call, int *result)
{
	uint64_t until = now_ns() + LIMIT_NS;
	/* First known as waiting, then the number is read: a locked instruction, so that the pages are dirty for all
	 * processors before. */
	uint32_t waiting = __atomic_add_fetch(&group->waiting, 1, __ATOMIC_SEQ_CST);
	uint64_t begun = __atomic_load_n(&group->begun, __ATOMIC_SEQ_CST);
	uint64_t good = __atomic_load_n(&group->good, __ATOMIC_SEQ_CST);
	uint64_t needed = early && good < begun ? begun : begun + 1;
	if (waiting >= group->expected) {
		futex_wake(&group->waiting);
	}
	for (;;) {
		uint32_t ended = __atomic_load_n(&group->ended, __ATOMIC_SEQ_CST), nobody = 0;
		if (__atomic_load_n(&group->good, __ATOMIC_SEQ_CST) >= needed) {
			return COVERED;
		}
		if (__atomic_compare_exchange_n(&group->leading, &nobody, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
			if (__atomic_load_n(&group->begun, __ATOMIC_SEQ_CST) < needed) {
				return lead(fd, call, result);
			}
			leave_the_lead(); /* the one that it needed has ended, perhaps not well */
			return __atomic_load_n(&group->good, __ATOMIC_SEQ_CST) >= needed ? COVERED : OWN;
		}
		if (now_ns() > until) {
			return OWN;
		}
		futex_wait(&group->ended, ended, LIMIT_NS);
	}
}

static int flush(int fd, long call)
{
	struct stat about;
	int before = errno, result = 0;
	if (!group || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
		errno = before;
		return (int)syscall(call, fd);
	}
	enum outcome outcome = join(fd, call, &result);
	if (outcome == OWN_DONE) {
		errno = result ? errno : before;
		return result;
	}
	errno = before;
	if (outcome == OWN) {
		return (int)syscall(call, fd);
	}
	__atomic_add_fetch(&group->served, 1, __ATOMIC_RELAXED);
	return sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE);
}

int fsync(int fd)
{
	return flush(fd, SYS_fsync);
}

int fdatasync(int fd)
{
	return flush(fd, SYS_fdatasync);
}

__attribute__((constructor)) static void construct(void)
{
	const char *path = getenv("REFIT_GROUP"), *hold_us = getenv("REFIT_GROUP_HOLD_US");
	int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (file < 0) {
		return;
	}
	void *at = mmap(NULL, sizeof *group, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	hold_ns = hold_us ? strtoull(hold_us, NULL, 10) * 1000 : 0;
	early = getenv("REFIT_GROUP_EARLY") != NULL;
	group = at == MAP_FAILED ? NULL : at;
}
