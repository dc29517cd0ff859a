/* Counts of what is allocated: see heap_page.h. */
#ifndef REFIT_HEAP_COUNTERS_H
#define REFIT_HEAP_COUNTERS_H

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
	struct refit_heap_mark *mark;
};

extern struct refit_heap_counters refit_heap;

/* Maps the private counters; 0 when that fails. */
int refit_heap_map_counters(void);

/* Begins to write to the file. */
void refit_heap_publish(struct refit_heap_file *file,
			struct refit_heap_mark *mark);

/* Frees a thread's slot when it ends. Called in the constructor. */
void refit_heap_watch_threads(void);

/* A block of so many bytes was given out, or taken back. */
void refit_heap_count(size_t requested, size_t usable);
void refit_heap_uncount(size_t requested, size_t usable);

/* An allocation that was counted was a part of another one. */
void refit_heap_retract(size_t requested, size_t usable);

/* Changes with each allocation that this thread counts. */
uint64_t refit_heap_turn(void);

/* Adds 1 to a field of the process. */
void refit_heap_note_in_process(size_t field);
#define REFIT_HEAP_NOTE(name)                                                  \
	refit_heap_note_in_process(offsetof(struct refit_heap_process, name))

/* Tells refit of memory that is the library's own. */
void refit_heap_add_region(const void *at, size_t size);

#endif
