#include "call_record.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "path.h"

/* A shorter wait is not looked up: the look-up would cost a large part of
 * it. */
#define SHORTEST_NS 20000

/* In which directories files were when they were last looked up. A look-up
 * takes 12 us just after a wait, when no cache holds anything of it, which is
 * much for an fsync of 100 us; fstat takes 3. A file is known by its identity,
 * not by its descriptor, and looked up again every 67 ms (2^26 ns): for that
 * long the waits of one that was renamed may count for its old directory.
 *
 * One word each, so that threads need no lock: 40 bits of a hash of the
 * identity, 16 of the time, 8 of the place: 1 + the directory's index, or
 * NOWHERE. Two files with the same 40 bits would share a directory, once in
 * 10^12 pairs. */
#define KNOWN 64
#define NOWHERE 255
static uint64_t known[KNOWN];
_Static_assert(REFIT_DIRECTORIES < NOWHERE, "a place has 8 bits");

static struct refit_directory *claim(struct refit_image *image, const char *path)
{
	for (int i = 0; i < REFIT_DIRECTORIES; i++) {
		struct refit_directory *entry = &image->directories[i];
		uint32_t state = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
		if (state == REFIT_ENTRY_VALID && prim_equal(entry->path, path)) {
			return entry;
		}
		if (state == REFIT_ENTRY_FREE &&
		    __atomic_compare_exchange_n(&entry->state, &state,
						REFIT_ENTRY_CLAIMED, 0,
						__ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			prim_copy(entry->path, path, sizeof entry->path);
			__atomic_store_n(&entry->state, REFIT_ENTRY_VALID,
					  __ATOMIC_RELEASE);
			return entry;
		}
	}
	return NULL;
}

/* The end of a path that does not fit as a whole. */
static const char *end_of(const char *path, long length, size_t size)
{
	return length < (long)size ? path : path + (length - (long)size + 1);
}

/* The place (see above) of the file's directory. */
static unsigned look_up(int fd, int is_directory)
{
	char path[REFIT_PATH];
	long length = refit_path_of(fd, path);
	if (length <= 0) {
		return NOWHERE;
	}
	if (!is_directory) {
		char *name = (char *)(uintptr_t)prim_basename(path);
		length = name - path - (name > path + 1);
		path[length] = '\0';
	}
	struct refit_directory *entry =
		claim(refit.image, end_of(path, length, sizeof entry->path));
	return entry ? 1 + (unsigned)(entry - refit.image->directories)
		     : NOWHERE;
}

static uint64_t hash(uint64_t device, uint64_t inode)
{
	/* The finisher of MurmurHash3: every bit of the input changes each of
	 * the output. */
	uint64_t h = inode + device * 0x9e3779b97f4a7c15;
	h = (h ^ (h >> 33)) * 0xff51afd7ed558ccd;
	h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53;
	return h ^ (h >> 33);
}

static void add_to_directory(const struct refit_call_record *record)
{
	struct stat st;
	if (record->fd < 0 ||
	    prim_syscall(SYS_fstat, record->fd, &st, 0, 0) != 0) {
		return;
	}
	uint64_t file = hash(st.st_dev, st.st_ino);
	uint64_t *word = &known[file % KNOWN];
	uint64_t wanted = (file >> 24 << 24) |
			  (record->ended_ns >> 26 & 0xffff) << 8;
	uint64_t found = __atomic_load_n(word, __ATOMIC_RELAXED);
	unsigned place = found & 0xff;
	if (!place || (found & ~(uint64_t)0xff) != wanted) {
		place = look_up(record->fd, S_ISDIR(st.st_mode));
		__atomic_store_n(word, wanted | place, __ATOMIC_RELAXED);
	}
	if (place != NOWHERE) {
		struct refit_directory *entry =
			&refit.image->directories[place - 1];
		refit_add(&entry->count, 1);
		refit_add(&entry->waited_ns, record->ended_ns - record->began_ns);
	}
}

static void trace(const struct refit_call_record *record)
{
	char path[REFIT_PATH];
	long length = refit_path_of(record->fd, path);
	if (length < 0) {
		path[0] = '\0';
		length = 0;
	}
	struct refit_event_ring *ring = refit.event_ring;
	uint64_t turn = __atomic_fetch_add(&ring->events, 1, __ATOMIC_RELAXED);
	struct refit_event *event = &ring->ring[turn % REFIT_EVENTS];
	__atomic_store_n(&event->turn, 0, __ATOMIC_RELEASE);
	event->at_ns = record->ended_ns;
	event->took_ns = record->ended_ns - record->began_ns;
	event->pid = (uint32_t)prim_syscall(SYS_getpid, 0, 0, 0, 0);
	event->call = record->call;
	event->answer = record->answer;
	event->result = (int32_t)record->result;
	prim_copy(event->executable, refit.name, sizeof event->executable);
	prim_copy(event->path, end_of(path, length, sizeof event->path),
		  sizeof event->path);
	__atomic_store_n(&event->turn, turn + 1, __ATOMIC_RELEASE);
}

void refit_record(const struct refit_call_record *record)
{
	if (refit_beneath_own_seccomp()) {
		return;
	}
	if (refit.traces) {
		trace(record);
	}
	if (refit.image && record->answer == REFIT_ANSWER_REAL &&
	    record->ended_ns - record->began_ns >= SHORTEST_NS) {
		add_to_directory(record);
	}
}
