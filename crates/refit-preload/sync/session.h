/* The session page: all that the preload and refit share, and nothing else.
 *
 * A session is a directory, named by $REFIT_SESSION:
 *
 *   policy            struct refit_policy, written by refit before the program
 *                     starts, mapped read-only by every image
 *   images/PID-RANDOM struct refit_image, one for each exec'ed image, made and
 *                     mapped by the image itself; refit only reads it, and
 *                     trusts nothing in it
 *
 * src/session.rs mirrors these structs; a test there compares every offset.
 * All integers are in native order: both sides run on the same machine.
 */
#ifndef REFIT_SESSION_H
#define REFIT_SESSION_H

#include <stdint.h>

#define REFIT_MAGIC 0x3130746966657221ull /* "!efit01" in memory order */
#define REFIT_VERSION 1u

/* What is counted, in the order of the counters: C name, name for people. */
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
	X(IO_URING_SETUP, "io_uring_setup")

enum refit_call {
#define X(name, text) REFIT_CALL_##name,
	REFIT_CALLS(X)
#undef X
	REFIT_CALL_COUNT
};

#define REFIT_CALL_SLOTS 16 /* room for REFIT_CALL_COUNT, fixed by the layout */

/* Why an exec'ed program is not reached: C name, name for people. */
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

enum refit_knob { REFIT_KNOB_SYNC, REFIT_KNOB_ODIRECT };

struct refit_rule {
	uint32_t knob; /* enum refit_knob */
	uint32_t on;   /* 0: off */
	char exe[64];  /* basename of /proc/self/exe; empty: every executable */
};

#define REFIT_RULES 64
#define REFIT_TEXT 8192

enum {
	REFIT_POLICY_COUNT = 1u << 0,  /* make an image file and count */
	REFIT_POLICY_FOLLOW = 1u << 1, /* put scrubbed variables back at exec */
};

struct refit_policy {
	uint64_t magic;
	uint32_t version;
	uint32_t flags;
	uint32_t rule_count;
	/* Offsets into text, each a NUL-terminated string. */
	uint32_t library;  /* path of this library */
	uint32_t preloads; /* refit's further LD_PRELOAD entries, ':' between */
	uint32_t session;  /* path of the session directory */
	uint32_t env;      /* NAME=VALUE strings, ended by an empty one */
	uint32_t pad;
	struct refit_rule rules[REFIT_RULES];
	char text[REFIT_TEXT];
};

struct refit_counter {
	uint64_t seen;       /* calls that asked for durability */
	uint64_t suppressed; /* answered without the kernel's work */
	uint64_t real;       /* passed on to the kernel */
	uint64_t waited_ns;  /* time spent in the real ones */
};

/* One process. Slot 0 collects what dead processes left behind. */
struct refit_slot {
	uint32_t pid; /* 0: free */
	uint32_t pad32;
	uint64_t pad[7];
	struct refit_counter calls[REFIT_CALL_SLOTS];
};

/* A program that this image exec'ed and that the preload cannot reach. */
struct refit_unreached {
	uint32_t state;  /* 0 free, 1 being written, 2 valid */
	uint32_t reason; /* enum refit_reason */
	uint64_t count;
	char name[112]; /* the end of its path, NUL-terminated */
};

#define REFIT_UNREACHED 24
#define REFIT_SLOTS 12
#define REFIT_USERS 16

enum {
	REFIT_IMAGE_SYNC_OFF = 1u << 0,
	REFIT_IMAGE_ODIRECT_OFF = 1u << 1,
	REFIT_IMAGE_DEEPBIND = 1u << 2,    /* dlopen with RTLD_DEEPBIND */
	REFIT_IMAGE_OWN_SECCOMP = 1u << 3, /* installed its own filter */
	REFIT_IMAGE_SHARED_SLOT = 1u << 4, /* more processes than slots */
};

struct refit_image {
	uint64_t magic;
	uint32_t version;
	uint32_t pid;
	uint32_t flags;            /* REFIT_IMAGE_* */
	uint32_t unreached_lost;   /* execs that found no free entry */
	uint64_t forked;           /* child processes that took a slot */
	uint64_t departed;         /* of these, gone on to exec something */
	uint64_t execs;            /* programs started that should be reached */
	char executable[256];      /* /proc/self/exe, or what the kernel ran */
	char malloc_object[256];   /* the object that serves malloc */
	uint32_t users[REFIT_USERS]; /* who exec'ed, other than the owner; 0 ends */
	struct refit_unreached unreached[REFIT_UNREACHED];
	struct refit_slot slots[REFIT_SLOTS];
};

#endif
