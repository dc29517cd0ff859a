/* The counters of this process, and where they are written. */
#ifndef REFIT_HEAP_OWN_COUNTERS_H
#define REFIT_HEAP_OWN_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "field.h"
#include "heap_page.h"
#include "prim.h"

/* The counters of a process, as in private memory and in the file. */
struct refit_heap_block {
	union {
		struct refit_heap_process process;
		char page[REFIT_HEAP_PAGE];
	};
	struct refit_heap_slot slots[REFIT_HEAP_SLOTS];
};

struct refit_heap_file {
	union {
		struct refit_heap_header header;
		char page[REFIT_HEAP_PAGE];
	};
	struct refit_heap_block processes[REFIT_HEAP_PROCESSES];
	char pad[REFIT_HEAP_LARGEST_PAGE - REFIT_HEAP_PAGE];
	struct refit_heap_samples samples;
	char pad_too[REFIT_HEAP_LARGEST_PAGE -
		     sizeof(struct refit_heap_samples) % REFIT_HEAP_LARGEST_PAGE];
	struct refit_heap_small_sizes small_sizes[REFIT_HEAP_PROCESSES];
};

/* Both are mapped apart: any page of a kernel may begin there. */
_Static_assert(offsetof(struct refit_heap_file, samples) %
			       REFIT_HEAP_LARGEST_PAGE == 0, "a page's begin");
_Static_assert(offsetof(struct refit_heap_file, small_sizes) %
			       REFIT_HEAP_LARGEST_PAGE == 0, "a page's begin");

#define REFIT_SMALL_IN_FILE                                                    \
	(REFIT_HEAP_PROCESSES * sizeof(struct refit_heap_small_sizes))

/* How one thread counts small sizes: see small.h. */
struct refit_heap_quick {
	uint64_t pending;
	uint64_t left;    /* usable bytes that may still be given out so ... */
	uint64_t granted; /* ... of so many */
	uint64_t *counts;    /* NULL: not yet */
	ptrdiff_t distance; /* from there to the file */
};

/* Lies in a page that fork wipes (MADV_WIPEONFORK). */
struct refit_heap_mark {
	/* From a private counter to the same in the file, in bytes; 0: not
	 * known, the process has just started or was forked. */
	ptrdiff_t distance;
	int is_lost; /* there is no room in the file for this process */
	int is_without_small; /* nor for its small sizes */
	struct refit_heap_quick quick[REFIT_HEAP_SLOTS];
};

struct refit_heap_counters {
	struct refit_heap_block *own; /* private; NULL: not mapped yet */
	/* The same; NULL where there is no table of live blocks. */
	struct refit_heap_small_sizes *small;
	struct refit_heap_file *file; /* NULL: before the constructor */
	/* The part of the file that is mapped: blocks of processes, and apart from
	 * them the samples. */
	size_t processes;
	struct refit_heap_samples *samples;
	size_t places;
	struct refit_heap_small_sizes *small_in_file; /* NULL: not mapped */
	struct refit_heap_mark *mark;
};

extern HIDDEN struct refit_heap_counters refit_heap;

/* Which block of the file is that of this process. */
static inline size_t refit_heap_place(void)
{
	const char *block = (const char *)refit_elsewhere(
		refit_heap.own, refit_heap.mark->distance);
	return (size_t)(block - (const char *)refit_heap.file->processes) /
	       sizeof(struct refit_heap_block);
}

/* This thread's counters; NULL: it has none yet. Static thread-local storage: a
 * preloaded library always gets it, without a call of __tls_get_addr, which could
 * allocate. */
#define REFIT_INITIAL_EXEC __attribute__((tls_model("initial-exec")))
extern HIDDEN REFIT_INITIAL_EXEC __thread struct refit_heap_slot
	*refit_heap_mine;

/* Of the same slot; NULL: this thread does not count small sizes apart. */
extern HIDDEN REFIT_INITIAL_EXEC __thread struct refit_heap_quick
	*refit_heap_quick;

/* Whether the counters are those of the process that runs: a child of vfork(2) has
 * its parent's memory. */
int refit_heap_is_own(void);

/* Whether no other thread can be in the library's memory: this one is the only thread
 * of a process that shares its memory with nobody. 0 beneath a seccomp filter of the
 * program's own too, where the kernel cannot be asked. */
int refit_is_alone(void);

#endif
