#define _GNU_SOURCE
#include "note.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "way.h"

/* A wait shorter than this is not looked up: the look takes about 1 µs, and
 * shall not be noticed beside what it explains. */
#define SHORTEST_NS 20000

static struct refit_directory *claim(struct refit_image *image, const char *path)
{
	for (int i = 0; i < REFIT_DIRECTORIES; i++) {
		struct refit_directory *entry = &image->directories[i];
		uint32_t state = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
		if (state == 2 && prim_equal(entry->path, path)) {
			return entry;
		}
		if (state == 0 &&
		    __atomic_compare_exchange_n(&entry->state, &state, 1, 0,
						__ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			prim_copy(entry->path, path, sizeof entry->path);
			__atomic_store_n(&entry->state, 2, __ATOMIC_RELEASE);
			return entry;
		}
	}
	return NULL;
}

/* The end of a path, where the whole does not fit. */
static const char *end_of(const char *path, long length, size_t size)
{
	return length < (long)size ? path : path + (length - (long)size + 1);
}

static void add_to_directory(const struct refit_call_note *note, char *path,
			     long length)
{
	struct stat st;
	int is_directory = prim_syscall(SYS_fstat, note->fd, &st, 0, 0) == 0 &&
			   S_ISDIR(st.st_mode);
	if (!is_directory) {
		char *name = (char *)(uintptr_t)prim_basename(path);
		length = name - path - (name > path + 1);
		path[length] = '\0';
	}
	struct refit_directory *entry =
		claim(refit.image, end_of(path, length, sizeof entry->path));
	if (entry) {
		refit_add(&entry->count, 1);
		refit_add(&entry->waited_ns, note->ended_ns - note->began_ns);
	}
}

static void trace(const struct refit_call_note *note, const char *path,
		  long length)
{
	struct refit_board *board = refit.board;
	uint64_t turn = __atomic_fetch_add(&board->events, 1, __ATOMIC_RELAXED);
	struct refit_event *event = &board->ring[turn % REFIT_EVENTS];
	__atomic_store_n(&event->turn, 0, __ATOMIC_RELEASE);
	event->at_ns = note->ended_ns;
	event->took_ns = note->ended_ns - note->began_ns;
	event->pid = (uint32_t)prim_syscall(SYS_getpid, 0, 0, 0, 0);
	event->call = note->call;
	event->answer = note->answer;
	event->result = (int32_t)note->result;
	prim_copy(event->executable, refit.name, sizeof event->executable);
	prim_copy(event->path, end_of(path, length, sizeof event->path),
		  sizeof event->path);
	__atomic_store_n(&event->turn, turn + 1, __ATOMIC_RELEASE);
}

void refit_note(const struct refit_call_note *note)
{
	char path[REFIT_PATH];
	int waited = refit.image && note->answer == REFIT_ANSWER_REAL &&
		     note->ended_ns - note->began_ns >= SHORTEST_NS;
	if (!waited && !refit.trace) {
		return;
	}
	long length = refit_path_of(note->fd, path);
	if (length < 0) {
		path[0] = '\0';
		length = 0;
	}
	if (refit.trace) {
		trace(note, path, length);
	}
	if (waited && length > 0) {
		add_to_directory(note, path, length);
	}
}
