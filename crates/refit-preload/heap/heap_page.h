/* What the heap library and refit share: one file for each exec'ed image, in the
 * images directory of the session (sync/session.h), told apart by its size. The
 * image makes and maps it; refit only reads it, and trusts nothing in it.
 *
 * Each process of the image has a block. Its counters are kept twice: in private
 * memory, which a forked child inherits as it was at the fork, and here, where
 * they outlive the process. The file is sparse: a page is allocated before it is
 * first written.
 *
 * src/heap/layout.rs of refit-session mirrors all of it; a test compares every
 * name, offset, size and number.
 */
#ifndef REFIT_HEAP_PAGE_H
#define REFIT_HEAP_PAGE_H

#include <stdint.h>

#define REFIT_HEAP_MAGIC 0x3170616568746672ull /* "rftheap1" in memory order */

/* What parts of the file are multiples of. The kernel's pages may be larger: the
 * samples, which are mapped apart, begin where any page does. */
#define REFIT_HEAP_PAGE 4096
#define REFIT_HEAP_LARGEST_PAGE 65536
#define REFIT_HEAP_CLASSES 126
/* Slot 0 holds what was inherited at a fork, and belongs to all threads that
 * found no other; each of the others to one thread. */
#define REFIT_HEAP_SLOTS 31
#define REFIT_HEAP_PROCESSES 256
#define REFIT_HEAP_REGIONS 24

/* Requests up to 512 bytes in steps of 8, then four classes for each doubling;
 * the last one has no end. */
#define REFIT_HEAP_FINE_CLASSES 64
#define REFIT_HEAP_FINE_BYTES 512

/* Without a table of live blocks (RLIMIT_AS) nobody knows what was requested of a
 * block that is freed, but malloc_usable_size(3) tells what is usable. So classes are
 * of usable sizes then, and `requested` is the slack (usable - requested) of all blocks
 * ever given out, which is never taken back. If n blocks of a class are live, of a
 * blocks with the slack s in all, of which none had more than M, then the slack of
 * those n is at most both s and n M, and at least s - (a - n) M.
 */
struct refit_heap_class {
	uint64_t allocations; /* ever made */
	uint64_t frees;
	uint64_t requested; /* bytes, live */
	uint64_t usable;    /* bytes, live: malloc_usable_size(3) */
};

struct refit_heap_slot {
	uint64_t is_shared; /* by threads */
	uint64_t allocated; /* bytes ever requested */
	/* Not yet added to the live size of the process; private memory only. */
	uint64_t pending_requested;
	uint64_t pending_usable;
	uint64_t pending_blocks;
	/* The next sample is due at so many bytes given out, and was drawn with
	 * this interval; private memory only. */
	uint64_t sample_at;
	uint64_t sample_interval;
	uint64_t given; /* usable bytes, ever; but for what small.h has in hand */
	struct refit_heap_class classes[REFIT_HEAP_CLASSES];
};

/* Requests of fewer bytes may be counted by their exact size: see small.h. */
#define REFIT_HEAP_SMALL 1024
#define REFIT_HEAP_SMALL_UNKNOWN 0xffff

/* One number for both: what a free adds to it, and what an allocation does is 1. Before a
 * half is full it is added to the class, and begins again. */
#define REFIT_HEAP_SMALL_FREE ((uint64_t)1 << 32)

/* Of a process. What is in here is not in its classes. */
struct refit_heap_small_sizes {
	/* What each of these blocks has, in bytes; above 1,016: none was counted. */
	uint16_t usable[REFIT_HEAP_SMALL];
	uint16_t pad[REFIT_HEAP_SMALL];
	uint64_t counts[REFIT_HEAP_SLOTS][REFIT_HEAP_SMALL];
};

struct refit_heap_size {
	uint64_t requested; /* bytes */
	uint64_t usable;    /* bytes */
	uint64_t blocks;
};

/* Memory of the library's own in the process. */
struct refit_heap_region {
	uint64_t at;
	uint64_t size; /* bytes of address space; 0: none */
};

/* How much the allocator could give back: see purge.c. */
struct refit_heap_purge {
	/* By refit: the number of its request, and the same number once the copy
	 * is to purge. Another number ends the copy. */
	uint32_t asked; /* 0: nothing */
	uint32_t purge;
	uint32_t pid; /* of the copy, as it sees it */
	uint32_t pad;
	uint64_t state; /* number << 32 | enum refit_purge_state */
	char why[64];   /* it was refused */
};

enum refit_purge_state {
	REFIT_PURGE_UNMADE,
	REFIT_PURGE_READY,
	REFIT_PURGE_DONE,
	REFIT_PURGE_REFUSED,
};

struct refit_heap_process {
	uint32_t pid; /* 0: free */
	uint32_t forked; /* from a process of the same image */
	uint64_t slots_used; /* no slot from here on was ever used */
	uint64_t inherited;  /* blocks at the fork, counted as negative frees */
	uint64_t unknown_frees; /* of blocks that were never counted */
	uint64_t untracked; /* blocks that could not be counted */
	uint64_t vanished; /* whose address was given out again */
	uint64_t small_slots; /* bits: these slots have small sizes */
	/* Private memory only; as exact as REFIT_HEAP_LAG tells. */
	struct refit_heap_size live;
	struct refit_heap_size peak; /* of the usable bytes, the same */
	/* M, without a table of live blocks. */
	uint64_t most_slack[REFIT_HEAP_CLASSES]; /* bytes, of any block */
	struct refit_heap_region regions[REFIT_HEAP_REGIONS];
	struct refit_heap_purge purge; /* in the file only */
};

/* Bytes of a thread that may be missing in the live size of the process: this many, or one
 * in 128 of those that are live, and never more than the second number. */
#define REFIT_HEAP_LAG 4096
#define REFIT_HEAP_LAG_SHARE 128
#define REFIT_HEAP_LAG_MOST 32768

/* Processes whose block another one has taken over. */
struct refit_heap_ended {
	uint64_t processes;
	uint64_t allocations;
	uint64_t frees;
	uint64_t allocated;
	struct refit_heap_size live; /* at their end */
	struct refit_heap_size peak; /* of the greatest of them */
};

#define REFIT_HEAP_SAMPLES 1024
#define REFIT_HEAP_SCRIPT 2040		  /* bytes */
#define REFIT_HEAP_STACK 16320		  /* bytes */
#define REFIT_HEAP_OBJECTS 65536	  /* bytes */
#define REFIT_HEAP_INTERVAL (512u << 10) /* bytes; doubled while room runs out */

/* A live block, and where it was allocated. */
struct refit_heap_sample {
	uint64_t is_complete;
	uint64_t requested; /* bytes */
	uint64_t usable;    /* bytes */
	uint64_t interval;  /* one in so many bytes is a sample: see samples.h */
	uint64_t instruction;
	uint64_t stack_pointer;
	uint64_t frame_pointer;
	uint64_t stack_bytes;
	uint64_t script_bytes;
	char script[REFIT_HEAP_SCRIPT]; /* functions of an interpreter: script_stack.h */
	char stack[REFIT_HEAP_STACK]; /* from the stack pointer on */
};

struct refit_heap_samples {
	uint64_t interval; /* 0: none are taken */
	uint64_t lost;
	uint64_t is_listing;
	uint64_t objects_bytes;
	/* Which process a sample is of, from 1 on; 0: it is free. */
	uint32_t owner[REFIT_HEAP_SAMPLES];
	char pad[4064];
	/* Those lines of /proc/PID/maps that have code, of the process that
	 * took a sample last, more or less. */
	char objects[REFIT_HEAP_OBJECTS];
	struct refit_heap_sample sample[REFIT_HEAP_SAMPLES];
};

enum {
	REFIT_HEAP_OTHER_MALLOC = 1u << 0, /* the program has one of its own */
	REFIT_HEAP_NO_USABLE = 1u << 1,    /* the allocator tells no sizes */
	REFIT_HEAP_LIMITED = 1u << 2,      /* RLIMIT_AS or RLIMIT_DATA: off */
	REFIT_HEAP_OLD_KERNEL = 1u << 3,   /* cannot tell forks apart: off */
	REFIT_HEAP_NEW_UNSEEN = 1u << 4,   /* operator new bypasses malloc */
	/* There is no table of live blocks: see struct refit_heap_class. */
	REFIT_HEAP_NO_TABLE = 1u << 5,
	/* The program lacked memory: all was given back, and no more counted. */
	REFIT_HEAP_GAVE_UP = 1u << 6,
};

struct refit_heap_header {
	uint64_t magic;
	uint32_t flags;
	uint32_t lost; /* forked processes that found no block */
	uint64_t forked;
	struct refit_heap_ended ended;
	char executable[256];
	char malloc_object[256]; /* that serves malloc */
	uint64_t shadow; /* where the table of live blocks is (shadow.c) */
};

#endif
