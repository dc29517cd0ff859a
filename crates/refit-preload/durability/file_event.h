/* What the durability library and refit share: a ring of events about files, one for
 * a whole run, in the session (sync/session.h). refit makes the file and allocates
 * all of it; each image maps it, and each process writes its events there in the
 * order in which the calls ended. refit reads them while the program runs, and
 * trusts nothing in them.
 *
 * src/file_event/layout.rs of refit-session mirrors all of it; a test compares every
 * name, offset, size and number.
 */
#ifndef REFIT_FILE_EVENT_H
#define REFIT_FILE_EVENT_H

#include <stdint.h>

#define REFIT_FILE_EVENTS_MAGIC 0x31656c6966746672ull /* "rftfile1" in memory order */

#define REFIT_FILE_EVENTS 512
#define REFIT_FILE_EVENT_PATH 1024  /* bytes, the NUL included */
#define REFIT_FILE_EVENT_SCRIPT 2040 /* bytes */
#define REFIT_FILE_EVENT_STACK 5880 /* bytes */

enum refit_file_operation {
	REFIT_FILE_IMAGE,   /* lines of /proc/PID/maps with code, in `stack` */
	REFIT_FILE_OPENED,  /* to be written, or it was made */
	REFIT_FILE_WROTE,   /* for the first time since any process made a sync */
	REFIT_FILE_RESIZED, /* to `at` bytes */
	REFIT_FILE_RENAMED,
	REFIT_FILE_LINKED,
	REFIT_FILE_MADE,    /* a directory, a symbolic link, a device */
	REFIT_FILE_REMOVED,
	REFIT_FILE_SYNCED,  /* fsync */
	REFIT_FILE_DATA_SYNCED,
	REFIT_FILE_ALL_SYNCED,	/* sync */
	REFIT_FILE_FS_SYNCED,	/* syncfs */
	REFIT_FILE_RANGE_SYNCED, /* sync_file_range */
	REFIT_FILE_MAPPED,	/* shared and to be written: `at`, `length` */
	REFIT_FILE_MAP_SYNCED,	/* msync: `at`, `length` */
	REFIT_FILE_TIMED,	/* its times were set */
	REFIT_FILE_ACKNOWLEDGED,
	REFIT_FILE_OPERATIONS
};

/* flags of an event */
#define REFIT_FILE_IN_STREAM 1	/* bytes wait in a buffer of the C library */
#define REFIT_FILE_DURABLE 2	/* the write itself was synchronous */
#define REFIT_FILE_ASYNC 4	/* msync with MS_ASYNC */
#define REFIT_FILE_EXCHANGED 8	/* renameat2 with RENAME_EXCHANGE */

/* A file as stat(2) has it; inode 0: there is none. */
struct refit_file {
	uint64_t device;
	uint64_t inode;
	uint64_t size; /* bytes */
	uint64_t changed_ns; /* st_mtim */
	uint32_t links;
	uint32_t mode;
};

struct refit_directory_id {
	uint64_t device;
	uint64_t inode;
};

struct refit_file_event {
	uint64_t turn; /* 1 + its number in the whole run; 0: not yet written */
	uint64_t own_turn; /* as turn, from its begin on */
	uint64_t began; /* number of events when a sync, rename or removal began */
	uint64_t image; /* chosen at random by each exec'ed image; forks inherit it */
	uint32_t pid;
	uint32_t parent;
	uint32_t operation;
	uint32_t flags;
	int32_t result; /* 0 or more, or -errno */
	int32_t descriptor;
	uint32_t open_flags; /* of open(2) */
	uint32_t pad;
	struct refit_file file;	 /* that it is about, after the call; of a rename, a
				  * removal or a sync before it */
	struct refit_file other; /* that had the new name, or this one, before it */
	struct refit_directory_id directory;	 /* of the (new) name */
	struct refit_directory_id old_directory; /* of a renamed one */
	uint64_t at;
	uint64_t length;
	uint64_t instruction; /* where the stack is unwound from; 0: there is none */
	uint64_t stack_pointer;
	uint64_t frame_pointer;
	uint64_t stack_bytes;
	uint64_t script_bytes;
	char path[REFIT_FILE_EVENT_PATH];
	char old_path[REFIT_FILE_EVENT_PATH];
	char script[REFIT_FILE_EVENT_SCRIPT]; /* functions of an interpreter: script_stack.h */
	char stack[REFIT_FILE_EVENT_STACK]; /* from the stack pointer on */
};

/* Which calls acknowledge. */
#define REFIT_ACKNOWLEDGES_DESCRIPTOR 1 /* a write to the file of `acknowledged` */
#define REFIT_ACKNOWLEDGES_SOCKET 2	/* a write to any socket */

struct refit_file_events {
	uint64_t magic;
	uint64_t events; /* so far */
	uint64_t read;	 /* so many of them, by refit */
	uint64_t syncs;	 /* how many syncs have begun, and one */
	uint64_t lost;	 /* events for which there was no room in time */
	uint64_t images; /* that write here */
	uint32_t is_given_up; /* nobody reads it any more */
	uint32_t acknowledges;
	struct refit_directory_id acknowledged; /* device and inode */
	char pad[4096 - 72];
	struct refit_file_event ring[REFIT_FILE_EVENTS];
};

#endif
