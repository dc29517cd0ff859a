#include "own_ring.h"

#include <linux/io_uring.h>
#include <sched.h>
#include <sys/mman.h>

#include "io_uring_entry.h"
#include "own_seccomp.h"
#include "ring_memory.h"

/* Flags with which the queue is as it is read here (io_uring_setup(2)); headers
 * may be older. */
#define NO_SQARRAY (1u << 16)  /* Linux 6.6 */
#define HYBRID_IOPOLL (1u << 17) /* Linux 6.13 */
#define KNOWN_FLAGS                                                            \
	(IORING_SETUP_IOPOLL | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP |      \
	 IORING_SETUP_ATTACH_WQ | IORING_SETUP_R_DISABLED |                    \
	 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN |                 \
	 IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SQE128 |                     \
	 IORING_SETUP_CQE32 | IORING_SETUP_SINGLE_ISSUER |                     \
	 IORING_SETUP_DEFER_TASKRUN | NO_SQARRAY | HYBRID_IOPOLL)

static void add_unseen(uint64_t n)
{
	if (refit.image) {
		refit_add(&refit.image->rings_unseen, n);
	}
}

static void give_up(struct own_ring *ring)
{
	if (__atomic_exchange_n(&ring->fate, UNSEEN, __ATOMIC_SEQ_CST) ==
		    FOLLOWED &&
	    ring->submitted) {
		add_unseen(1);
	}
}

void refit_own_ring_set_up(int fd, unsigned flags,
			   const struct io_uring_params *p)
{
	add_unseen(1);
	if (!refit.policy || refit_beneath_own_seccomp()) {
		return;
	}
	if (!refit_rings) {
		long at = prim_syscall6(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (prim_failed(at) ||
		    prim_syscall(SYS_madvise, at, 4096, MADV_WIPEONFORK, 0)) {
			return;
		}
		refit_rings = (struct own_ring *)at;
	}
	struct own_ring *ring = refit_find_ring(fd);
	for (int i = 0; !ring && i < REFIT_RINGS; i++) {
		int was = FREE;
		if (__atomic_compare_exchange_n(&refit_rings[i].fate, &was, UNSEEN, 0,
						__ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST)) {
			ring = &refit_rings[i];
		}
	}
	if (!ring) {
		return;
	}
	*ring = (struct own_ring){
		.fd = fd,
		.fate = UNSEEN,
		.flags = flags,
		.entries = p->sq_entries,
		.head = p->sq_off.head,
		.tail = p->sq_off.tail,
		.array = p->sq_off.array,
	};
	if (!(flags & ~KNOWN_FLAGS)) {
		__atomic_store_n(&ring->fate, FOLLOWED, __ATOMIC_SEQ_CST);
	}
}

/* ---- what it submits ----------------------------------------------------- */

static unsigned *word(const struct own_ring *ring, unsigned offset)
{
	return (unsigned *)(void *)(ring->queue + offset);
}

static int is_whole(const struct own_ring *ring)
{
	size_t entries = ring->entries;
	size_t words = ring->flags & NO_SQARRAY
			       ? 0
			       : ring->array + entries * sizeof(unsigned);
	size_t sqe = ring->flags & IORING_SETUP_SQE128 ? 128 : 64;
	return ring->queue && ring->sqes && entries &&
	       !(entries & (entries - 1)) && ring->queue_size >= words &&
	       ring->queue_size >= ring->head + sizeof(unsigned) &&
	       ring->queue_size >= ring->tail + sizeof(unsigned) &&
	       ring->sqes_size >= entries * sqe;
}

/* Another thread may be at it: it reads a few entries, so it is waited for, but
 * not for ever, as it may be stopped. */
static void wait_while_busy(struct own_ring *ring)
{
	for (int i = 0; i < 1000 && __atomic_load_n(&ring->busy, __ATOMIC_SEQ_CST);
	     i++) {
		prim_syscall(SYS_sched_yield, 0, 0, 0, 0);
	}
}

/* Whether this thread may change the queue now. */
static int begin(struct own_ring *ring)
{
	uintptr_t me = (uintptr_t)__builtin_thread_pointer(), none = 0;
	if (!__atomic_compare_exchange_n(&ring->thread, &none, me, 0,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&
	    none != me) {
		give_up(ring);
		wait_while_busy(ring);
		return 0;
	}
	/* By a signal handler of this thread, or one that did not return. */
	if (__atomic_exchange_n(&ring->busy, 1, __ATOMIC_SEQ_CST)) {
		give_up(ring);
		return 0;
	}
	if (__atomic_load_n(&ring->fate, __ATOMIC_SEQ_CST) == FOLLOWED) {
		return 1;
	}
	__atomic_store_n(&ring->busy, 0, __ATOMIC_SEQ_CST);
	return 0;
}

/* Swaps what the kernel will read now; head is where it begins. Whether the queue
 * is as it should be. */
static int swap_submitted(const struct own_ring *ring, unsigned count,
			  unsigned *head)
{
	*head = __atomic_load_n(word(ring, ring->head), __ATOMIC_ACQUIRE);
	unsigned tail = __atomic_load_n(word(ring, ring->tail), __ATOMIC_ACQUIRE);
	unsigned mask = ring->entries - 1;
	unsigned shift = ring->flags & IORING_SETUP_SQE128 ? 1 : 0;
	struct io_uring_sqe *sqes = (void *)ring->sqes;
	if (tail - *head > ring->entries) {
		return 0;
	}
	for (unsigned i = *head; i != tail && i - *head < count; i++) {
		unsigned at = ring->flags & NO_SQARRAY
				      ? i & mask
				      : word(ring, ring->array)[i & mask];
		if (at <= mask) { /* else the kernel drops it */
			refit_swap_entry(&sqes[at << shift], ring->flags);
		}
	}
	return 1;
}

long refit_io_uring_enter(long fd, long count, long wait, long flags,
			  long argument, long size)
{
	static int unknown;
	struct own_ring *ring = NULL;
	unsigned head = 0, n = (unsigned)count;
	if (n && refit.policy && !refit_beneath_own_seccomp()) {
		int by_index = flags & IORING_ENTER_REGISTERED_RING;
		ring = by_index ? NULL : refit_find_ring((int)fd);
		if (!ring && !__atomic_exchange_n(&unknown, 1, __ATOMIC_RELAXED)) {
			add_unseen(1);
		} else if (ring && !is_whole(ring)) {
			give_up(ring);
		}
	}
	int follows = ring && ring->fate == FOLLOWED && begin(ring);
	if (follows) {
		if (!ring->submitted) {
			ring->submitted = 1;
			add_unseen(-1ul);
		}
		if (!swap_submitted(ring, n, &head)) {
			give_up(ring);
			follows = 0;
		}
		__atomic_store_n(&ring->busy, 0, __ATOMIC_SEQ_CST);
	}
	long result = prim_syscall6(SYS_io_uring_enter, fd, count, wait, flags,
				    argument, size);
	/* Unmapped meanwhile by another thread, it is free. */
	if (follows && result > 0 && ring->fate == FOLLOWED && ring->queue &&
	    ring->fd == (int)fd &&
	    __atomic_load_n(word(ring, ring->head), __ATOMIC_ACQUIRE) - head !=
		    (unsigned)result) {
		give_up(ring);
	}
	return result;
}
