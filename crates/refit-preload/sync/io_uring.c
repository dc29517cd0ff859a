#include "io_uring.h"

#include <linux/io_uring.h>

#include "decision.h"
#include "io_uring_entry.h"
#include "next.h"
#include "own_ring.h"
#include "slot.h"
#include "sync.h"

/* The head of liburing's struct io_uring, the same since 2.0 (liburing.h). */
struct io_uring {
	unsigned *head;
	unsigned *tail;
	unsigned *mask;
	unsigned *entries;
	unsigned *flags;
	unsigned *dropped;
	unsigned *array;
	struct io_uring_sqe *sqes;
	unsigned sqe_head;
	unsigned sqe_tail;
	size_t ring_size;
	void *ring_pointer;
	unsigned pad[4];
	void *completion[9];
	unsigned pad2[4];
	unsigned setup_flags;
};

static int is_denied(void)
{
	return refit.policy && refit.policy->flags & REFIT_POLICY_DENY_IO_URING;
}

static void ring_set_up(unsigned setup_flags)
{
	if (setup_flags & IORING_SETUP_IOPOLL) {
		refit.iopoll = 1;
	}
	/* refit counts what the filter asks about. */
	if (!refit_notified()) {
		refit_seen_and_real(REFIT_CALL_IO_URING_SETUP);
	}
}

long refit_io_uring_setup(long entries, void *parameters)
{
	if (is_denied()) {
		return -ENOSYS;
	}
	long ring = prim_syscall(SYS_io_uring_setup, entries, parameters, 0, 0);
	/* The kernel has read and filled the parameters when it returns a
	 * descriptor. */
	if (ring >= 0) {
		const struct io_uring_params *p = parameters;
		ring_set_up(p->flags);
		refit_own_ring_set_up((int)ring, p->flags, p);
	}
	return ring;
}

/* liburing has system call instructions of its own, so its functions are
 * intercepted. */
static int set_up(int (*next)(unsigned, void *, void *), unsigned entries,
		  void *ring, struct io_uring_params *p)
{
	if (!next || is_denied()) {
		return -ENOSYS;
	}
	unsigned flags = p->flags;
	int result = next(entries, ring, p);
	if (result >= 0) {
		ring_set_up(flags);
	}
	return result;
}

EXPORT int io_uring_queue_init_params(unsigned entries, void *ring,
				      struct io_uring_params *p);
EXPORT int io_uring_queue_init_params(unsigned entries, void *ring,
				      struct io_uring_params *p)
{
	NEXT_FOR_CALLER(next, io_uring_queue_init_params)
	return set_up(next, entries, ring, p);
}

/* liburing's own does just this, and whether its call comes back to us depends
 * on how it was linked: so it is done here, once. */
EXPORT int io_uring_queue_init(unsigned entries, void *ring, unsigned flags);
EXPORT int io_uring_queue_init(unsigned entries, void *ring, unsigned flags)
{
	NEXT_FOR_CALLER(next, io_uring_queue_init_params)
	struct io_uring_params p = {.flags = flags};
	return set_up(next, entries, ring, &p);
}

EXPORT int io_uring_queue_init_mem(unsigned entries, void *ring,
				   struct io_uring_params *p, void *buffer,
				   size_t size);
EXPORT int io_uring_queue_init_mem(unsigned entries, void *ring,
				   struct io_uring_params *p, void *buffer,
				   size_t size)
{
	NEXT_FOR_CALLER(next, io_uring_queue_init_mem)
	if (!next || is_denied()) {
		return -ENOSYS;
	}
	unsigned flags = p->flags;
	int result = next(entries, ring, p, buffer, size);
	if (result >= 0) {
		ring_set_up(flags);
	}
	return result;
}

/* Swaps what is filled in and not yet submitted to the kernel. */
static void swap_pending(const struct io_uring *ring)
{
	unsigned shift = ring->setup_flags & IORING_SETUP_SQE128 ? 1 : 0;
	for (unsigned i = ring->sqe_head; i != ring->sqe_tail; i++) {
		refit_swap_entry(&ring->sqes[(i & *ring->mask) << shift],
				 ring->setup_flags);
	}
}

#define DEFINE_SUBMIT(name, PARAMETERS, ARGUMENTS)                             \
	EXPORT int name PARAMETERS;                                            \
	EXPORT int name PARAMETERS                                             \
	{                                                                      \
		NEXT_FOR_CALLER(next, name)                                    \
		if (!next) {                                                   \
			return -ENOSYS;                                        \
		}                                                              \
		swap_pending(ring);                                            \
		return next ARGUMENTS;                                         \
	}

DEFINE_SUBMIT(io_uring_submit, (void *ring), (ring))
DEFINE_SUBMIT(io_uring_submit_and_wait, (void *ring, unsigned wait), (ring, wait))
DEFINE_SUBMIT(io_uring_submit_and_wait_timeout,
	      (void *ring, void *done, unsigned wait, void *time, void *mask),
	      (ring, done, wait, time, mask))
DEFINE_SUBMIT(io_uring_submit_and_get_events, (void *ring), (ring))
