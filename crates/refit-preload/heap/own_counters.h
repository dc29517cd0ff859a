/* The counters of this process, and where they are written. */
#ifndef REFIT_HEAP_OWN_COUNTERS_H
#define REFIT_HEAP_OWN_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

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
	struct refit_heap_samples samples;
};

/* Lies in a page that fork wipes (MADV_WIPEONFORK). */
struct refit_heap_mark {
	/* From a private counter to the same in the file, in bytes; 0: not
	 * known, the process has just started or was forked. */
	ptrdiff_t distance;
	int is_lost; /* there is no room in the file for this process */
};

struct refit_heap_counters {
	struct refit_heap_block *own; /* private; NULL: not mapped yet */
	struct refit_heap_file *file; /* NULL: before the constructor */
	/* The part of the file that is mapped: blocks of processes, and apart from
	 * them the samples. */
	size_t processes;
	struct refit_heap_samples *samples;
	size_t places;
	struct refit_heap_mark *mark;
};

extern HIDDEN struct refit_heap_counters refit_heap;

/* This thread's counters; NULL: it has none yet. Static thread-local storage: a
 * preloaded library always gets it, without a call of __tls_get_addr, which could
 * allocate. */
#define REFIT_INITIAL_EXEC __attribute__((tls_model("initial-exec")))
extern HIDDEN REFIT_INITIAL_EXEC __thread struct refit_heap_slot
	*refit_heap_mine;

/* Whether the counters are those of the process that runs: a child of vfork(2) has
 * its parent's memory. */
int refit_heap_is_own(void);

/* Whether no other thread can be in the library's memory: this one is the only thread
 * of a process that shares its memory with nobody. 0 beneath a seccomp filter of the
 * program's own too, where the kernel cannot be asked. */
int refit_is_alone(void);

#endif
