/* The state of one image: its policy and its counters. */
#ifndef REFIT_STATE_H
#define REFIT_STATE_H

#include <stdint.h>

#include "prim.h"
#include "session.h"

/* Which slot is this process's. Lies in a page that fork wipes
 * (MADV_WIPEONFORK), so that a child finds NULL and takes a slot of its own. A
 * vfork child finds its parent's, and is told apart by pid. */
struct refit_mark {
	struct refit_slot *slot;
	uint32_t pid;
	uint32_t forked; /* 0: the process that was exec'ed */
};

/* What becomes of a call. */
enum refit_decision {
	REFIT_DECISION_REAL, /* the kernel answers */
	REFIT_DECISION_OFF,  /* we answer, exactly, by a probe */
	REFIT_DECISION_DISK, /* the kernel answers, and then the emulated disk
			      * delays, or refuses */
	REFIT_DECISION_ASK,  /* made without a cookie: refit answers through the
			      * filter, and counts */
};

struct refit_state {
	const struct refit_policy *policy; /* NULL: real calls, nothing else */
	struct refit_image *image;         /* NULL: nothing is counted */
	struct refit_event_ring *event_ring; /* NULL: not needed, or not there */
	struct refit_flushes *flushes; /* in the event ring, or this image's */
	struct refit_mark *mark;
	uint32_t owner; /* user that the image file belongs to */
	enum refit_decision decision; /* for every file, unless by_path */
	int by_path;     /* each file is decided for itself */
	int odirect_off; /* for every file, unless direct_by_path */
	int direct_by_path;
	uint64_t matched; /* as in the image, before there is one */
	int traces;       /* each call is written to the event ring */
	int own_seccomp;  /* filters of the program, as far as they were seen, or
			   * REFIT_SECCOMP_UNKNOWN: see own_seccomp.h */
	int filtered;     /* a filter of the policy's is beneath, as far as that was
			   * asked, or came later */
	int iopoll;       /* has an IOPOLL io_uring, which needs O_DIRECT */
	/* The C library's answer whether this process has one thread
	 * (__libc_single_threaded, glibc 2.32), or to a 0. */
	const char *single_threaded;
	struct refit_slot *first_slot; /* the exec'ed process's */
	char name[40]; /* basename of the executable */
};

extern struct refit_state refit;

/* In refit.own_seccomp, beside a number: nobody looked yet for inherited ones. */
#define REFIT_SECCOMP_UNKNOWN (1 << 30)

static inline void refit_add(uint64_t *field, uint64_t n)
{
	__atomic_fetch_add(field, n, __ATOMIC_RELAXED);
}

static inline void refit_flag(uint32_t flag)
{
	if (refit.image) {
		__atomic_fetch_or(&refit.image->flags, flag, __ATOMIC_RELAXED);
	}
}

/* A filter lies beneath, and refit counts what passes it without a cookie. */
static inline int refit_notified(void)
{
	return refit.policy && refit.policy->flags & REFIT_POLICY_NOTIFIED;
}

/* A filter lies beneath by which the kernel answers with 0 what passes it without a
 * cookie; the one that the policy has lies beneath some processes only. */
static inline int refit_answered(void)
{
	return refit.policy && refit.policy->flags & REFIT_POLICY_ANSWERED &&
	       (!refit.policy->filter_length || refit.filtered);
}

/* A filter lies beneath, and refit decides and counts what passes it without a
 * cookie. */
static inline int refit_guarded(void)
{
	return refit.policy && refit.policy->flags & REFIT_POLICY_GUARDED;
}

/* A string of the policy. */
static inline const char *refit_policy_text(uint32_t offset)
{
	return refit.policy->text + (offset < REFIT_TEXT ? offset : 0);
}

#endif
