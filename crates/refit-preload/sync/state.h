/* The state of one image: its policy, its counters, the next functions. */
#ifndef REFIT_STATE_H
#define REFIT_STATE_H

#include <stdint.h>
#include <sys/types.h>

#include "prim.h"
#include "session.h"

struct aiocb;
struct iovec;

/* What stands behind each name that we export, found in the constructor with
 * dlsym(RTLD_NEXT): another preload or the C library. NULL before that, and
 * where the C library has no such function. */
#define REFIT_NEXT(X)                                                          \
	X(int, open, (const char *, int, ...))                                 \
	X(int, open64, (const char *, int, ...))                               \
	X(int, openat, (int, const char *, int, ...))                          \
	X(int, openat64, (int, const char *, int, ...))                        \
	X(int, __open_2, (const char *, int))                                  \
	X(int, __open64_2, (const char *, int))                                \
	X(int, __openat_2, (int, const char *, int))                           \
	X(int, __openat64_2, (int, const char *, int))                         \
	X(int, mkostemp, (char *, int))                                        \
	X(int, mkostemp64, (char *, int))                                      \
	X(int, mkostemps, (char *, int, int))                                  \
	X(int, mkostemps64, (char *, int, int))                                \
	X(int, fcntl, (int, int, ...))                                         \
	X(int, fcntl64, (int, int, ...))                                       \
	X(ssize_t, pwritev2, (int, const struct iovec *, int, off_t, int))     \
	X(ssize_t, pwritev64v2, (int, const struct iovec *, int, off_t, int))  \
	X(int, aio_fsync, (int, struct aiocb *))                               \
	X(int, aio_fsync64, (int, struct aiocb *))                             \
	X(int, lio_listio, (int, struct aiocb *const *, int, void *))          \
	X(int, lio_listio64, (int, struct aiocb *const *, int, void *))        \
	X(int, prctl, (int, ...))                                              \
	X(int, io_uring_queue_init_params, (unsigned, void *, void *))         \
	X(int, io_uring_queue_init_mem,                                        \
	  (unsigned, void *, void *, void *, size_t))                          \
	X(int, execve, (const char *, char *const *, char *const *))           \
	X(int, execvpe, (const char *, char *const *, char *const *))          \
	X(int, fexecve, (int, char *const *, char *const *))                   \
	X(int, execveat,                                                       \
	  (int, const char *, char *const *, char *const *, int))              \
	X(int, posix_spawn,                                                    \
	  (pid_t *, const char *, const void *, const void *, char *const *,   \
	   char *const *))                                                     \
	X(int, posix_spawnp,                                                   \
	  (pid_t *, const char *, const void *, const void *, char *const *,   \
	   char *const *))

struct refit_next {
#define X(type, name, args) type(*name) args;
	REFIT_NEXT(X)
#undef X
};

/* Which slot is this process's. Lies in a page that fork wipes
 * (MADV_WIPEONFORK), so that a child finds NULL and takes a slot of its own. A
 * vfork child finds its parent's, and is told apart by pid. */
struct refit_mark {
	struct refit_slot *slot;
	uint32_t pid;
	uint32_t forked; /* 0: the process that was exec'ed */
};

struct refit_state {
	struct refit_next next;
	const struct refit_policy *policy; /* NULL: real calls, nothing else */
	struct refit_image *image;         /* NULL: nothing is counted */
	struct refit_mark *mark;
	uint32_t owner; /* user that the image file belongs to */
	int sync_off;
	int odirect_off;
	int own_seccomp; /* a filter may kill for our probes: none any more */
	int iopoll;      /* has an IOPOLL ring, which needs O_DIRECT */
};

extern struct refit_state refit;

/* For calls that no allocator makes while it starts, and that have no plain
 * system call to fall back on: found now if a library's constructor makes them
 * before ours ran. */
void refit_find_next(void);
#define NEXT(name)                                                             \
	(LIKELY(refit.next.name != NULL) ? refit.next.name                     \
					 : (refit_find_next(), refit.next.name))

/* And for what a library that came by dlopen brought along for itself alone
 * (RTLD_LOCAL): the name leads its calls to us, and RTLD_NEXT does not lead to
 * it. NULL where the caller does not see it either. */
void *refit_find_in_scope_of(const void *caller, const char *name);

/* The same for the two functions in stubs.S. */
extern void *refit_next_syscall __attribute__((visibility("hidden")));
extern void *refit_next_dlopen __attribute__((visibility("hidden")));
void *refit_find_dlopen(void);

void refit_note_deepbind(void);

/* The counter of a call for this process, or NULL when nothing is counted. */
struct refit_slot *refit_take_slot(void);

static inline struct refit_counter *refit_counter(enum refit_call call)
{
	if (UNLIKELY(!refit.image)) {
		return NULL;
	}
	struct refit_slot *slot = refit.mark->slot;
	if (UNLIKELY(!slot)) {
		slot = refit_take_slot();
	}
	return &slot->calls[call];
}

static inline void refit_add(uint64_t *field, uint64_t n)
{
	__atomic_fetch_add(field, n, __ATOMIC_RELAXED);
}

static inline void refit_seen(struct refit_counter *c)
{
	if (c) {
		refit_add(&c->seen, 1);
	}
}

static inline void refit_suppressed(struct refit_counter *c)
{
	if (c) {
		refit_add(&c->suppressed, 1);
	}
}

static inline void refit_flag(uint32_t flag)
{
	if (refit.image) {
		__atomic_fetch_or(&refit.image->flags, flag, __ATOMIC_RELAXED);
	}
}

/* Real calls are timed only when somebody will read it. */
uint64_t refit_clock_ns(void);
static inline uint64_t refit_begin(struct refit_counter *c)
{
	return c ? refit_clock_ns() : 0;
}
void refit_end(struct refit_counter *c, uint64_t began_ns);

#endif
