#include "events.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "call_stack.h"
#include "fd_link.h"
#include "own_seccomp_of_sync.h"
#include "script_stack.h"
#include "wiped_page.h"

struct refit_file_events *refit_events;

/* Of this image. */
static uint64_t image;

/* How many events with a stack this image has made, and those since its objects were
 * listed. */
static uint64_t made, unlisted;

/* So long a call waits for room, once in a run: then nothing is told any more. */
#define MOST_NS 2000000000ull
#define WAIT_NS 100000

int refit_tells(void)
{
	return refit_events &&
	       !__atomic_load_n(&refit_events->is_given_up, __ATOMIC_RELAXED) &&
	       !refit_has_own_seccomp();
}

static int is_read(uint64_t number)
{
	uint64_t read =
		__atomic_load_n(&refit_events->read, __ATOMIC_ACQUIRE);
	return number - read < REFIT_FILE_EVENTS;
}

static int has_room(uint64_t number)
{
	if (LIKELY(is_read(number))) {
		return 1;
	}
	struct timespec pause = {0, WAIT_NS};
	uint64_t until = prim_clock_ns() + MOST_NS;
	while (!__atomic_load_n(&refit_events->is_given_up,
				__ATOMIC_RELAXED)) {
		if (is_read(number)) {
			return 1;
		}
		if (prim_clock_ns() > until) {
			__atomic_store_n(&refit_events->is_given_up, 1,
					 __ATOMIC_RELAXED);
		}
		prim_syscall(SYS_nanosleep, &pause, NULL, 0, 0);
	}
	return 0;
}

/* Who this process is. Lies in a page that fork wipes (MADV_WIPEONFORK), so that a child
 * asks again; what a child after vfork does counts for its parent. */
struct self {
	uint32_t pid; /* 0: not asked yet */
	uint32_t parent;
};
static struct self *self;

static struct self asked(void)
{
	return (struct self){
		.pid = (uint32_t)prim_syscall(SYS_getpid, 0, 0, 0, 0),
		.parent = (uint32_t)prim_syscall(SYS_getppid, 0, 0, 0, 0),
	};
}

static struct self this_process(void)
{
	if (UNLIKELY(!self)) {
		return asked();
	}
	if (UNLIKELY(!__atomic_load_n(&self->pid, __ATOMIC_ACQUIRE))) {
		struct self now = asked();
		self->parent = now.parent;
		__atomic_store_n(&self->pid, now.pid, __ATOMIC_RELEASE);
	}
	return *self;
}

static struct refit_file_event *claim(void)
{
	uint64_t number =
		__atomic_fetch_add(&refit_events->events, 1, __ATOMIC_RELAXED);
	if (!has_room(number)) {
		__atomic_fetch_add(&refit_events->lost, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	struct refit_file_event *event =
		&refit_events->ring[number % REFIT_FILE_EVENTS];
	__atomic_store_n(&event->turn, 0, __ATOMIC_RELEASE);
	/* All but the texts and the stack, which are long. */
	char *begin = (char *)&event->began;
	for (char *at = begin; at < event->path; at += 8) {
		*(uint64_t *)(void *)at = 0;
	}
	event->path[0] = event->old_path[0] = '\0';
	event->own_turn = number + 1;
	event->image = image;
	struct self process = this_process();
	event->pid = process.pid;
	event->parent = process.parent;
	event->descriptor = -1;
	return event;
}

static void show(struct refit_file_event *event)
{
	__atomic_store_n(&event->turn, event->own_turn, __ATOMIC_RELEASE);
}

/* ---- objects ------------------------------------------------------------ */

static void list_objects(void)
{
	long fd = prim_syscall(SYS_openat, AT_FDCWD, "/proc/self/maps",
			       O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0) {
		return;
	}
	struct refit_file_event *event = claim();
	if (event) {
		event->operation = REFIT_FILE_IMAGE;
		long n = prim_syscall(SYS_readlinkat, AT_FDCWD,
				      "/proc/self/exe", event->path,
				      sizeof event->path - 1);
		event->path[n > 0 ? n : 0] = '\0';
		event->stack_bytes = refit_copy_code_lines(
			fd, event->stack, sizeof event->stack);
		show(event);
	}
	prim_syscall(SYS_close, fd, 0, 0, 0);
}

/* The 1st, 2nd, 4th, ... event of an image, and no fewer than one in 256: what was
 * loaded since is listed then. */
static void list_objects_at_times(void)
{
	uint64_t number = __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
	uint64_t since = __atomic_add_fetch(&unlisted, 1, __ATOMIC_RELAXED);
	if ((number & (number - 1)) == 0 || since >= 256) {
		__atomic_store_n(&unlisted, 0, __ATOMIC_RELAXED);
		list_objects();
	}
}

/* ---- events ------------------------------------------------------------- */

struct refit_file_event *refit_begin_event(enum refit_file_operation operation)
{
	list_objects_at_times();
	struct refit_file_event *event = claim();
	if (event) {
		event->operation = operation;
	}
	return event;
}

__attribute__((noinline)) void refit_end_event(struct refit_file_event *event)
{
	struct prim_place here = prim_place();
	event->instruction = here.instruction;
	event->stack_pointer = here.stack;
	event->frame_pointer = here.frame;
	event->stack_bytes = refit_copy_stack(event->stack, here.stack,
					      sizeof event->stack);
	event->script_bytes =
		refit_put_script_stack(event->script, sizeof event->script);
	show(event);
}

/* ---- files -------------------------------------------------------------- */

static struct refit_file file_of(const struct stat *st)
{
	return (struct refit_file){
		.device = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.changed_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000u +
			      (uint64_t)st->st_mtim.tv_nsec,
		.links = (uint32_t)st->st_nlink,
		.mode = st->st_mode,
	};
}

static const struct refit_file no_file;

struct refit_file refit_file_named(struct refit_name name, int follow)
{
	struct stat st;
	return name.path && prim_syscall(SYS_newfstatat, name.directory,
					 name.path, &st,
					 follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0
		       ? file_of(&st)
		       : no_file;
}

struct refit_file refit_file_of(int fd)
{
	struct stat st;
	return fd >= 0 && prim_syscall(SYS_fstat, fd, &st, 0, 0) == 0
		       ? file_of(&st)
		       : no_file;
}

/* The length of a path without its last part; slashes at its end belong to that. */
static size_t length_of_parent(const char *path)
{
	size_t n = prim_length(path);
	while (n > 0 && path[n - 1] == '/') {
		n--;
	}
	while (n > 0 && path[n - 1] != '/') {
		n--;
	}
	return n;
}

struct refit_directory_id refit_directory_of(struct refit_name name)
{
	char parent[REFIT_FILE_EVENT_PATH] = ".";
	size_t n = name.path ? length_of_parent(name.path) : 0;
	if (n >= sizeof parent) {
		return (struct refit_directory_id){0, 0};
	}
	if (n) {
		prim_copy(parent, name.path, n + 1);
	}
	struct refit_file file = refit_file_named(
		(struct refit_name){name.directory, parent}, 1);
	return (struct refit_directory_id){file.device, file.inode};
}

int refit_are_beside(struct refit_name a, struct refit_name b)
{
	if (a.directory != b.directory || !a.path || !b.path) {
		return 0;
	}
	size_t n = length_of_parent(a.path);
	if (n != length_of_parent(b.path)) {
		return 0;
	}
	while (n > 0 && a.path[n - 1] == b.path[n - 1]) {
		n--;
	}
	return n == 0;
}

void refit_put_path_of(char to[REFIT_FILE_EVENT_PATH], int fd)
{
	char link[REFIT_FD_LINK];
	refit_fd_link(fd, link);
	long n = prim_syscall(SYS_readlinkat, AT_FDCWD, link, to,
			      REFIT_FILE_EVENT_PATH - 1);
	to[n > 0 && to[0] == '/' ? n : 0] = '\0';
}

void refit_put_path(char to[REFIT_FILE_EVENT_PATH], struct refit_name name)
{
	to[0] = '\0';
	if (!name.path) {
		return;
	}
	char *end = to;
	if (name.path[0] != '/') {
		if (name.directory == AT_FDCWD) {
			/* Its result counts the NUL (getcwd(2)); a directory out of
			 * reach is "(unreachable)...". */
			long n = prim_syscall(SYS_getcwd, to,
					      REFIT_FILE_EVENT_PATH - 1, 0, 0);
			to[n > 0 && to[0] == '/' ? n - 1 : 0] = '\0';
		} else {
			refit_put_path_of(to, name.directory);
		}
		end += prim_length(to);
		if (end > to && end[-1] != '/') {
			*end++ = '/';
		}
	}
	prim_copy(end, name.path, (size_t)(to + REFIT_FILE_EVENT_PATH - end));
}

/* ---- start -------------------------------------------------------------- */

static uint64_t random_number(void)
{
	uint64_t n = 0;
	if (prim_syscall(SYS_getrandom, &n, sizeof n, 1 /* GRND_NONBLOCK */,
			 0) != sizeof n) {
		struct timespec t;
		prim_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t, 0, 0);
		n = (uint64_t)t.tv_nsec ^ (uint64_t)(uintptr_t)&n;
		n ^= (uint64_t)prim_syscall(SYS_getpid, 0, 0, 0, 0) << 32;
	}
	return n;
}

extern char **environ;

#define PATH_SIZE 512

__attribute__((constructor)) static void construct(void)
{
	const char *session = prim_env(environ, "REFIT_SESSION=");
	if (!session || session[0] != '/' ||
	    prim_length(session) > PATH_SIZE - 32 || refit_has_own_seccomp()) {
		return;
	}
	char path[PATH_SIZE];
	char *end = prim_copy(path, session, sizeof path);
	prim_copy(end, "/file-events", 32);
	long fd = prim_syscall(SYS_openat, AT_FDCWD, path,
			       O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0) {
		return;
	}
	struct refit_file file = refit_file_of((int)fd);
	long mapped = file.size == sizeof(struct refit_file_events)
			      ? prim_syscall6(SYS_mmap, 0, (long)file.size,
					      PROT_READ | PROT_WRITE, MAP_SHARED,
					      fd, 0)
			      : -EINVAL;
	prim_syscall(SYS_close, fd, 0, 0, 0);
	struct refit_file_events *events = (void *)mapped;
	if (prim_failed(mapped) || events->magic != REFIT_FILE_EVENTS_MAGIC) {
		return;
	}
	image = random_number();
	self = refit_map_wiped_page();
	refit_find_interpreter();
	__atomic_fetch_add(&events->images, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&refit_events, events, __ATOMIC_RELEASE);
}
