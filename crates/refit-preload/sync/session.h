/* The session page: all that the preload and refit share.
 *
 * A session is a directory, named by $REFIT_SESSION:
 *
 *   policy         struct refit_policy, written by refit before the program
 *                  starts, mapped read-only by every image
 *   images/RANDOM  struct refit_image, one for each exec'ed image, made and
 *                  mapped by the image itself; refit only reads it, and trusts
 *                  nothing in it
 *
 * src/layout.rs of refit-session mirrors all of it; a test there compares every
 * name, offset, size and number. All integers are in native order: both sides
 * run on the same machine.
 */
#ifndef REFIT_SESSION_H
#define REFIT_SESSION_H

#include <stdint.h>

#define REFIT_MAGIC 0x3130746966657221ull /* "!efit01" in memory order */
#define REFIT_VERSION 6u

/* In the last argument register of a real sync call that refit's own code
 * makes: refit's filters let it through first. It is not a secret: whoever
 * sends it gets the kernel's answer. */
#define REFIT_COOKIE 0x7469666572ull /* "refit" */

/* What a filter of the policy answers to mmap(0, 0, 0, 0, -1, REFIT_COOKIE),
 * which without it fails with EINVAL. */
#define REFIT_FILTER_IS_THERE 130 /* EOWNERDEAD, which mmap never gives */

/* What is counted, in the order of the counters: name in C, name in reports. */
#define REFIT_CALLS(X)                                                         \
	X(FSYNC, "fsync")                                                      \
	X(FDATASYNC, "fdatasync")                                              \
	X(SYNC, "sync")                                                        \
	X(SYNCFS, "syncfs")                                                    \
	X(SYNC_FILE_RANGE, "sync_file_range")                                  \
	X(MSYNC, "msync")                                                      \
	X(OPEN_SYNC, "open(O_SYNC)")                                           \
	X(PWRITEV2, "pwritev2(RWF_SYNC)")                                      \
	X(AIO_FSYNC, "aio_fsync")                                              \
	X(LIO_LISTIO, "lio_listio(sync)")                                      \
	X(OPEN_DIRECT, "open(O_DIRECT)")                                       \
	X(SETFL_DIRECT, "fcntl(O_DIRECT)")                                     \
	X(IO_URING_SETUP, "io_uring_setup")                                    \
	X(IO_SUBMIT, "io_submit(fsync)")                                       \
	X(IO_URING_SYNC, "io_uring(fsync)")

enum refit_call {
#define X(name, text) REFIT_CALL_##name,
	REFIT_CALLS(X)
#undef X
	REFIT_CALL_COUNT
};

#define REFIT_CALL_SLOTS 15 /* room for REFIT_CALL_COUNT, fixed by the layout */

/* Why an exec'ed program is not reached: name in C, name in reports. */
#define REFIT_REASONS(X)                                                       \
	X(REACHED, "reached")                                                  \
	X(STATIC, "static")                                                    \
	X(SETUID, "setuid")                                                    \
	X(SETGID, "setgid")                                                    \
	X(FILE_CAPABILITIES, "file capabilities")                              \
	X(OTHER_ARCHITECTURE, "32-bit or other architecture")                  \
	X(OTHER_LIBC, "other libc")                                            \
	X(SANITIZER, "sanitizer runtime must come first")                      \
	X(LIBRARY_HIDDEN, "library not visible in its root")                   \
	X(ENVIRONMENT, "environment cleared")                                  \
	X(OWN_SECCOMP, "own seccomp filter")

enum refit_reason {
#define X(name, text) REFIT_REASON_##name,
	REFIT_REASONS(X)
#undef X
	REFIT_REASON_COUNT
};

/* Functions that another object of the program may define after us, as a preload of
 * the user's own: name, whether the calls that we do not answer reach it. In the
 * order of the bits of refit_image.others. */
#define REFIT_OTHERS(X)                                                        \
	X(fsync, 1)                                                            \
	X(fdatasync, 1)                                                        \
	X(sync, 1)                                                             \
	X(syncfs, 1)                                                           \
	X(sync_file_range, 1)                                                  \
	X(msync, 1)                                                            \
	X(openat2, 0)                                                          \
	X(io_submit, 0)                                                        \
	X(syscall, 0)                                                          \
	X(execv, 0)                                                            \
	X(execl, 0)                                                            \
	X(execlp, 0)                                                           \
	X(execle, 0)                                                           \
	X(execveat, 0)

enum refit_other {
#define X(name, passes) REFIT_OTHER_##name,
	REFIT_OTHERS(X)
#undef X
	REFIT_OTHER_COUNT
};

enum refit_knob { REFIT_KNOB_SYNC, REFIT_KNOB_ODIRECT, REFIT_KNOB_DISK };

struct refit_rule {
	uint32_t knob; /* enum refit_knob */
	uint32_t on;   /* 0: off, or for REFIT_KNOB_DISK: emulated */
	uint32_t path; /* offset into text of a pattern; 0: every path */
	uint32_t pad;
	char exe[64];  /* basename of /proc/self/exe; empty: every executable */
};

/* ---- the emulated disk ------------------------------------------------- */

enum refit_disk_kind { REFIT_DISK_REAL, REFIT_DISK_LATENCY, REFIT_DISK_FAIL };

enum refit_when {
	REFIT_WHEN_ALWAYS,
	REFIT_WHEN_EVERY,  /* the nth, the 2nth, and so on */
	REFIT_WHEN_AFTER,  /* all but the first n */
	REFIT_WHEN_CHANCE, /* each with n millionths */
};

#define REFIT_LATENCIES 1024

struct refit_disk {
	uint32_t kind;  /* enum refit_disk_kind */
	uint32_t error; /* errno of a failed flush */
	uint32_t when;  /* enum refit_when */
	int32_t event_ring;  /* SysV id of the event ring, -1: none */
	uint64_t n;
	uint64_t seed;
	/* The (i + 1/2) / 1024 quantiles of a flush's duration. */
	uint64_t latency_ns[REFIT_LATENCIES];
};

/* The event ring: a System V shared memory segment that every process of the
 * tree writes. Unlike a file, nobody can shrink it under those that map it.
 * Mode 0600; the kernel removes it with the last process that uses it.
 * Nothing in it is trusted. */
#define REFIT_QUEUES 15
#define REFIT_EVENTS 8192 /* a power of two */

struct refit_queue {
	uint64_t device;  /* st_dev, 0: free */
	uint64_t busy_ns; /* CLOCK_MONOTONIC when it has served all so far */
	uint64_t from_ns; /* when the last flush begins, or began */
};

/* The state of the emulated disk. */
struct refit_flushes {
	uint64_t number; /* of flushes so far */
	struct refit_queue queues[REFIT_QUEUES];
};

/* One traced call. */
struct refit_event {
	uint64_t turn;    /* 1 + its number in the whole trace; written last */
	uint64_t at_ns;   /* CLOCK_MONOTONIC at its end */
	uint64_t took_ns; /* from call to return */
	uint32_t pid;
	uint32_t call;   /* enum refit_call */
	uint32_t answer; /* enum refit_answer */
	int32_t result;  /* as the kernel has it: -errno on failure */
	char executable[40]; /* basename */
	char path[176];      /* the end of it; empty: unknown or none */
};

enum refit_answer {
	REFIT_ANSWER_REAL,       /* by the kernel */
	REFIT_ANSWER_SUPPRESSED, /* by refit, without the kernel's work */
	REFIT_ANSWER_INJECTED,   /* a fault of the emulated disk */
};

struct refit_event_ring {
	struct refit_flushes flushes;
	uint64_t events; /* numbers the traced calls */
	struct refit_event ring[REFIT_EVENTS];
};

/* ---- the policy -------------------------------------------------------- */

#define REFIT_RULES 64
#define REFIT_FILTER 256
#define REFIT_TEXT 8192

enum {
	REFIT_POLICY_COUNT = 1u << 0,  /* make an image file and count */
	REFIT_POLICY_FOLLOW = 1u << 1, /* put scrubbed variables back at exec */
	/* A seccomp filter lies beneath that asks refit about each sync call
	 * without a cookie: the preload makes such a call where it cannot
	 * decide. */
	REFIT_POLICY_NOTIFIED = 1u << 2,
	REFIT_POLICY_TRACE = 1u << 3, /* write each call to the event ring */
	REFIT_POLICY_DENY_IO_URING = 1u << 4, /* io_uring_setup: ENOSYS */
	/* What has a filter of refit's beneath: the kernel answers each sync call
	 * without a cookie with 0, and nobody counts it; */
	REFIT_POLICY_ANSWERED = 1u << 5,
	REFIT_POLICY_GUARDED = 1u << 6, /* or refit answers and counts it. */
};

struct refit_policy {
	uint64_t magic;
	uint32_t version;
	uint32_t flags;
	uint32_t rule_count;
	/* Offsets into text, each a NUL-terminated string. */
	uint32_t library;  /* refit's own LD_PRELOAD entries, ':' between */
	uint32_t preloads; /* what refit adds further, the same */
	uint32_t session;  /* path of the session directory */
	uint32_t env;      /* NAME=VALUE strings, ended by an empty one */
	/* How many seccomp filters the program has at its start, refit's own
	 * among them; what has more installed or inherited others, or has that
	 * of this policy. */
	uint32_t seccomp_filters;
	/* Which directory is "/" to refit: in another root paths mean
	 * nothing. */
	uint64_t root_dev;
	uint64_t root_ino;
	/* The filter that goes beneath what the preload cannot reach, as struct
	 * sock_filter (linux/filter.h); 0 instructions: none does. */
	uint64_t filter_length;
	uint64_t filter[REFIT_FILTER];
	struct refit_disk disk;
	struct refit_rule rules[REFIT_RULES];
	char text[REFIT_TEXT];
};

struct refit_counter {
	/* Calls that asked for durability, in two parts, so that what is
	 * suppressed is counted by one addition. */
	uint64_t suppressed; /* answered without the kernel's work */
	uint64_t not_suppressed;
	uint64_t real;       /* passed on to the kernel */
	uint64_t waited_ns;  /* time spent in the real ones */
	uint64_t injected;   /* failed by the emulated disk */
};

/* One process. Slot 0 is the sum of the dead ones, and of those that find no
 * other; slot 1 is the exec'ed process's, and never another's. */
struct refit_slot {
	uint32_t pid; /* 0: free */
	uint32_t pad32;
	uint64_t pad[4];
	struct refit_counter calls[REFIT_CALL_SLOTS];
};

/* An entry of a table that several processes fill. */
enum refit_entry { REFIT_ENTRY_FREE, REFIT_ENTRY_CLAIMED, REFIT_ENTRY_VALID };

#define REFIT_UNREACHED_FILTERED (1u << 16) /* a filter was put beneath it */

/* A program that this image exec'ed and that the preload cannot reach. */
struct refit_unreached {
	uint32_t state;  /* enum refit_entry */
	uint32_t reason; /* enum refit_reason, and REFIT_UNREACHED_FILTERED */
	uint64_t count;
	char name[112]; /* the end of its path, NUL-terminated */
};

/* Where calls waited: the directory of the file, or the file itself where it
 * is a directory. */
struct refit_directory {
	uint32_t state; /* enum refit_entry */
	uint32_t pad;
	uint64_t count;
	uint64_t waited_ns;
	char path[168]; /* the end of it */
};

#define REFIT_DIRECTORIES 24
#define REFIT_UNREACHED 24
#define REFIT_SLOTS 12
#define REFIT_USERS 16

enum {
	REFIT_IMAGE_SYNC_OFF = 1u << 0,
	REFIT_IMAGE_ODIRECT_OFF = 1u << 1,
	REFIT_IMAGE_DEEPBIND = 1u << 2,    /* dlopen with RTLD_DEEPBIND */
	REFIT_IMAGE_OWN_SECCOMP = 1u << 3, /* installed its own filter */
	REFIT_IMAGE_SHARED_SLOT = 1u << 4, /* more processes than slots */
	REFIT_IMAGE_NO_EVENT_RING = 1u << 5, /* could not attach it */
	REFIT_IMAGE_UNFILTERED = 1u << 6, /* no filter of the policy's beneath */
	REFIT_IMAGE_FILTERED = 1u << 7, /* there was one, or came later */
};

struct refit_image {
	uint64_t magic;
	uint32_t version;
	uint32_t pid;
	uint32_t flags;            /* REFIT_IMAGE_* */
	uint32_t unreached_lost;   /* execs that found no free entry */
	uint64_t forked;           /* child processes that took a slot */
	uint64_t departed;         /* of these, those that exec'ed something */
	uint64_t execs;            /* programs started that should be reached */
	uint64_t path_unknown;     /* real calls, as the path was not known */
	uint64_t not_delayed;      /* opens whose writes bypass the emulated disk */
	uint64_t matched;          /* bit i: rule i decided a call */
	uint64_t rings_unseen;     /* io_urings: what they are given is not seen */
	char executable[256];      /* /proc/self/exe, or what the kernel ran */
	char malloc_object[256];   /* the object that serves malloc */
	uint64_t others; /* bit i: REFIT_OTHERS(i) is another object's too */
	char other_object[128];    /* the first such object: the end of its path */
	uint32_t users[REFIT_USERS]; /* that exec'ed, but the owner; 0 ends */
	/* With the first two in the first page: most programs write no other. */
	struct refit_slot slots[REFIT_SLOTS];
	struct refit_unreached unreached[REFIT_UNREACHED];
	struct refit_directory directories[REFIT_DIRECTORIES];
};

#endif
