/* The state of one image: its policy, its counters, the next functions. */
#ifndef REFIT_STATE_H
#define REFIT_STATE_H

#include <stdint.h>
#include <sys/types.h>

#include "prim.h"
#include "session.h"

struct aiocb;
struct iocb;
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
	X(int, io_uring_submit, (void *))                                      \
	X(int, io_uring_submit_and_wait, (void *, unsigned))                   \
	X(int, io_uring_submit_and_wait_timeout,                               \
	  (void *, void *, unsigned, void *, void *))                          \
	X(int, io_uring_submit_and_get_events, (void *))                       \
	X(int, execve, (const char *, char *const *, char *const *))           \
	X(int, execvp, (const char *, char *const *))                          \
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

enum refit_decision {
	REFIT_DECISION_REAL, /* the kernel's answer */
	REFIT_DECISION_OFF,  /* ours, exact by a probe */
	REFIT_DECISION_DISK, /* the kernel's, delayed or refused as on another disk */
	REFIT_DECISION_ASK,  /* without a cookie: refit answers through the filter,
			 * and counts */
};

struct refit_state {
	struct refit_next next;
	const struct refit_policy *policy; /* NULL: real calls, nothing else */
	struct refit_image *image;         /* NULL: nothing is counted */
	struct refit_event_ring *event_ring;         /* NULL: none needed, or none had */
	struct refit_flushes *flushes;     /* the event ring's, or this image's own */
	struct refit_mark *mark;
	uint32_t owner; /* user that the image file belongs to */
	enum refit_decision decision; /* of every file, unless by_path */
	int by_path;        /* see decision.h */
	int odirect_off;    /* of every file, unless direct_by_path */
	int direct_by_path;
	uint64_t matched;   /* as in the image, before there is one */
	int trace;          /* each call goes to the event ring */
	char name[40];      /* basename of the executable */
	int own_seccomp; /* a filter may kill for our probes: none any more */
	int iopoll;      /* has an IOPOLL ring, which needs O_DIRECT */
	int own_execvp;  /* another preload has an execvp and no execvpe */
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

/* Not every program has these libraries from its start. */
#define NEXT_FOR_CALLER(found, name)                                           \
	__typeof__(refit.next.name) found = NEXT(name);                        \
	if (UNLIKELY(!found)) {                                                \
		*(void **)&found = refit_find_in_scope_of(                     \
			__builtin_return_address(0), #name);                   \
	}

/* The same for the two functions in stubs.S. */
extern void *refit_next_syscall __attribute__((visibility("hidden")));
extern void *refit_next_dlopen __attribute__((visibility("hidden")));
void *refit_find_dlopen(void);

void refit_saw_deepbind(void);

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

static inline void refit_seen_and_real(enum refit_call call)
{
	struct refit_counter *c = refit_counter(call);
	if (c) {
		refit_add(&c->seen, 1);
		refit_add(&c->real, 1);
	}
}

static inline void refit_flag(uint32_t flag)
{
	if (refit.image) {
		__atomic_fetch_or(&refit.image->flags, flag, __ATOMIC_RELAXED);
	}
}

uint64_t refit_clock_ns(void);

#endif
