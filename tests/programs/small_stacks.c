/* Calls each function that refit answers, on a stack as small as a thread or a
 * signal handler may have, and prints how much of it was used.
 *
 * usage: small_stacks thread|signal FILE FUNCTION...
 * It prints `FUNCTION BYTES of SIZE` for each. Below the stack lies a page that
 * nobody may touch.
 */
#define _GNU_SOURCE
#include <aio.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/aio_abi.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

extern char **environ;
static const char *function, *file;
static int fd, directory, failed;
static void *mapped;
static char *program[] = {"true", NULL};
static aio_context_t context;

static int status_of(pid_t child)
{
	int status;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
	}
	return status;
}

static int spawned(int (*spawn)(pid_t *, const char *,
				const posix_spawn_file_actions_t *,
				const posix_spawnattr_t *, char *const *,
				char *const *),
		   const char *name)
{
	pid_t child;
	return spawn(&child, name, NULL, NULL, program, environ) ||
	       status_of(child);
}

/* In the child of a vfork the parent's stack is used. */
#define IN_A_CHILD(exec)                                                       \
	({                                                                     \
		pid_t child = vfork();                                         \
		if (child == 0) {                                              \
			exec;                                                  \
			_exit(127);                                            \
		}                                                              \
		child < 0 || status_of(child);                                 \
	})

static int submit(void)
{
	struct iocb block = {.aio_lio_opcode = IOCB_CMD_FSYNC,
			     .aio_fildes = (unsigned)fd};
	struct iocb *blocks[] = {&block};
	struct io_event event;
	return syscall(SYS_io_submit, context, 1L, blocks) != 1 ||
	       syscall(SYS_io_getevents, context, 1L, 1L, &event, NULL) != 1;
}

static int opened(int made)
{
	return made < 0 || close(made);
}

/* A function that this libc, or the headers, may not have. */
static void *named(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);
	return found ? found : dlsym(RTLD_DEFAULT, "abort");
}

static int made_unique(int (*make)(char *, int), int (*with_end)(char *, int, int))
{
	static char name[4096];
	snprintf(name, sizeof name, "%s%s", file, make ? "-XXXXXX" : "-XXXXXX.x");
	int made = make ? make(name, O_SYNC) : with_end(name, 2, O_SYNC);
	return opened(made) || unlink(name);
}

static int finished(int began, struct aiocb *block)
{
	while (began == 0 && aio_error(block) == EINPROGRESS) {
		usleep(1000);
	}
	return began || aio_return(block) < 0;
}

static int synced(int (*sync)(int, struct aiocb *))
{
	static struct aiocb block;
	memset(&block, 0, sizeof block);
	block.aio_fildes = fd;
	return finished(sync(O_SYNC, &block), &block);
}

static int listed(int (*list)(int, struct aiocb *const *, int, struct sigevent *))
{
	static struct aiocb block;
	struct aiocb *blocks[] = {&block};
	memset(&block, 0, sizeof block);
	block.aio_fildes = fd;
	block.aio_buf = "x";
	block.aio_nbytes = 1;
	block.aio_lio_opcode = LIO_WRITE;
	return finished(list(LIO_WAIT, blocks, 1, NULL), &block);
}

static int same_capabilities(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];
	int (*set)(void *, void *) = named("capset");
	return syscall(SYS_capget, &header, data) || set(&header, data);
}

static int filtered(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog all = {1, &allow};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}

static int mapped_by(void *(*map)(void *, size_t, int, int, int, off_t))
{
	void *at = map(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	return at == MAP_FAILED || munmap(at, 4096);
}

static int piped(void)
{
	FILE *pipe = popen("exit 0", "r");
	return !pipe || pclose(pipe);
}

static int loaded(void)
{
	void *handle = dlopen("libm.so.6", RTLD_NOW);
	return !handle || dlclose(handle);
}

static int is_at(void *made)
{
	int has = made != NULL;
	free(made);
	return !has;
}

static int aligned(void)
{
	void *made = NULL;
	return posix_memalign(&made, 64, 100) || is_at(made);
}

static int is_usable(void)
{
	void *made = malloc(100);
	size_t size = malloc_usable_size(made);
	return is_at(made) || size < 100;
}

/* liburing's, by its documented signatures. Its struct io_uring has fewer bytes. */
static int rung(const char *name)
{
	static char ring[1024], parameters[512];
	static char *memory;
	int (*init)(unsigned, void *, unsigned) = named("io_uring_queue_init");
	void (*end)(void *) = named("io_uring_queue_exit");
	int made;
	memset(ring, 0, sizeof ring);
	memset(parameters, 0, sizeof parameters);
	if (!strcmp(name, "io_uring_queue_init_params")) {
		int (*with)(unsigned, void *, void *) = named(name);
		made = with(4, ring, parameters);
	} else if (!strcmp(name, "io_uring_queue_init_mem")) {
		int (*with)(unsigned, void *, void *, void *, size_t) = named(name);
		memory = memory ? memory : aligned_alloc(4096, 1 << 21);
		made = with(4, ring, parameters, memory, 1 << 21);
		/* A kernel before 6.5 has no rings in a program's memory. */
		if (made == -EINVAL) {
			return 0;
		}
		made = made > 0 ? 0 : made;
	} else {
		made = init(4, ring, 0);
	}
	if (made < 0) {
		return 1;
	}
	struct {
		long long seconds, ns;
	} moment = {0, 1};
	void *none = NULL;
	if (!strcmp(name, "io_uring_submit")) {
		made = ((int (*)(void *))named(name))(ring);
	} else if (!strcmp(name, "io_uring_submit_and_wait")) {
		made = ((int (*)(void *, unsigned))named(name))(ring, 0);
	} else if (!strcmp(name, "io_uring_submit_and_get_events")) {
		made = ((int (*)(void *))named(name))(ring);
	} else if (!strcmp(name, "io_uring_submit_and_wait_timeout")) {
		int (*wait)(void *, void **, unsigned, void *, void *) = named(name);
		made = wait(ring, &none, 1, &moment, NULL);
		made = made == -ETIME ? 0 : made;
	}
	end(ring);
	return made < 0;
}

/* C++'s, in a program of C: size, then alignment, then std::nothrow. */
static int operated(const char *name)
{
	int is_new = !strncmp(name, "_Znw", 4) || !strncmp(name, "_Zna", 4);
	int is_aligned = strstr(name, "St11align_val_t") != NULL;
	void *(*make)(size_t, size_t, const void *) =
		named(is_new ? name : is_aligned ? "_ZnwmSt11align_val_t" : "_Znwm");
	void (*drop)(void *, size_t, size_t, const void *) =
		named(!is_new ? name : is_aligned ? "_ZdlPvSt11align_val_t" : "_ZdlPv");
	void *made = make(100, 64, &made);
	int has = made != NULL;
	int is_sized = !is_new && name[6] == 'm';
	drop(made, is_sized ? 100 : 64, 64, &made);
	return !has;
}

/* Whether it is one of those that are called here. */
static int call(void)
{
	struct open_how how = {.flags = O_RDWR | O_SYNC};
	struct iovec part = {"x", 1};
	int (*checked)(const char *, int);
	int (*checked_at)(int, const char *, int);
	failed = 0;
#define NAMED(name, how)                                                       \
	if (!strcmp(function, #name)) {                                        \
		failed = (how) != 0;                                           \
		return 1;                                                      \
	}
	NAMED(fsync, fsync(fd))
	NAMED(fdatasync, fdatasync(fd))
	NAMED(sync, (sync(), 0))
	NAMED(syncfs, syncfs(fd))
	NAMED(sync_file_range, sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE))
	NAMED(msync, msync(mapped, 4096, MS_SYNC))
	NAMED(open, opened(open(file, O_RDWR | O_SYNC)))
	NAMED(open64, opened(open64(file, O_RDWR | O_SYNC)))
	NAMED(openat, opened(openat(AT_FDCWD, file, O_RDWR | O_DSYNC)))
	NAMED(openat64, opened(openat64(AT_FDCWD, file, O_RDWR | O_DSYNC)))
	NAMED(__open_2, (checked = named("__open_2"),
			 opened(checked(file, O_RDWR | O_SYNC))))
	NAMED(__open64_2, (checked = named("__open64_2"),
			   opened(checked(file, O_RDWR | O_SYNC))))
	NAMED(__openat_2, (checked_at = named("__openat_2"),
			   opened(checked_at(AT_FDCWD, file, O_RDWR | O_SYNC))))
	NAMED(__openat64_2,
	      (checked_at = named("__openat64_2"),
	       opened(checked_at(AT_FDCWD, file, O_RDWR | O_SYNC))))
	NAMED(creat, opened(creat(file, 0600)))
	if (!strcmp(function, "openat2")) {
		int (*open)(int, const char *, void *, size_t) =
			dlsym(RTLD_DEFAULT, "openat2");
		failed = opened(open ? open(AT_FDCWD, file, &how, sizeof how)
				     : (int)syscall(SYS_openat2, AT_FDCWD, file,
						    &how, sizeof how));
		return 1;
	}
	NAMED(mkostemp, made_unique(mkostemp, NULL))
	NAMED(mkostemp64, made_unique(mkostemp64, NULL))
	NAMED(mkostemps, made_unique(NULL, mkostemps))
	NAMED(mkostemps64, made_unique(NULL, mkostemps64))
	NAMED(fcntl, fcntl(fd, F_SETFL, O_SYNC))
	NAMED(fcntl64, fcntl64(fd, F_SETFL, O_SYNC))
	NAMED(pwritev2, pwritev2(fd, &part, 1, 0, RWF_SYNC) != 1)
	NAMED(pwritev64v2, pwritev64v2(fd, &part, 1, 0, RWF_SYNC) != 1)
	NAMED(write, write(fd, "x", 1) != 1)
	NAMED(close, close(dup(fd)))
	NAMED(aio_fsync, synced(aio_fsync))
	NAMED(aio_fsync64, synced((void *)aio_fsync64))
	NAMED(lio_listio, listed((void *)lio_listio))
	NAMED(lio_listio64, listed((void *)lio_listio64))
	NAMED(io_submit, submit())
	NAMED(mmap, mapped_by(mmap))
	NAMED(mmap64, mapped_by(mmap64))
	NAMED(munmap, mapped_by(mmap))
	NAMED(prctl, filtered())
	/* Another user may not: the answer is the kernel's. */
	NAMED(chroot, chroot("/") && errno != EPERM)
	NAMED(syscall, (int)syscall(SYS_fsync, fd))
	NAMED(dlopen, loaded())
	NAMED(setuid, setuid(getuid()))
	NAMED(seteuid, seteuid(geteuid()))
	NAMED(setreuid, setreuid(getuid(), geteuid()))
	NAMED(setresuid, setresuid(getuid(), geteuid(), geteuid()))
	NAMED(capset, same_capabilities())
	NAMED(system, system("exit 0"))
	NAMED(popen, piped())
	NAMED(posix_spawn, spawned(posix_spawn, "/bin/true"))
	NAMED(posix_spawnp, spawned(posix_spawnp, "true"))
	NAMED(execve, IN_A_CHILD(execve("/bin/true", program, environ)))
	NAMED(execv, IN_A_CHILD(execv("/bin/true", program)))
	NAMED(execvp, IN_A_CHILD(execvp("true", program)))
	NAMED(execvpe, IN_A_CHILD(execvpe("true", program, environ)))
	NAMED(execl, IN_A_CHILD(execl("/bin/true", "true", (char *)NULL)))
	NAMED(execle,
	      IN_A_CHILD(execle("/bin/true", "true", (char *)NULL, environ)))
	NAMED(execlp, IN_A_CHILD(execlp("true", "true", (char *)NULL)))
	NAMED(fexecve, IN_A_CHILD(fexecve(directory, program, environ)))
	NAMED(execveat, IN_A_CHILD(execveat(directory, "", program, environ,
					    AT_EMPTY_PATH)))
	NAMED(malloc, is_at(malloc(100)))
	NAMED(free, is_at(malloc(100)))
	NAMED(calloc, is_at(calloc(10, 10)))
	NAMED(realloc, is_at(realloc(malloc(100), 1 << 20)))
	NAMED(reallocarray, is_at(reallocarray(malloc(100), 10, 100)))
	NAMED(posix_memalign, aligned())
	NAMED(aligned_alloc, is_at(aligned_alloc(64, 128)))
	NAMED(memalign, is_at(memalign(64, 100)))
	NAMED(valloc, is_at(valloc(100)))
	NAMED(pvalloc, is_at(pvalloc(100)))
	NAMED(malloc_usable_size, is_usable())
	if (!strncmp(function, "io_uring_", 9)) {
		failed = rung(function);
		return 1;
	}
	if (!strncmp(function, "_Z", 2)) {
		failed = operated(function);
		return 1;
	}
	return 0;
}

static void *in_thread(void *none)
{
	call();
	return none;
}

static void in_handler(int signal)
{
	(void)signal;
	call();
}

/* Memory for a stack, painted, above a page that nobody may touch. */
static char *stack_of(size_t size)
{
	char *room = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED || mprotect(room, 4096, PROT_NONE)) {
		exit(99);
	}
	memset(room + 4096, 0x5a, size);
	return room + 4096;
}

static size_t used(const char *stack, size_t size)
{
	size_t at = 0;
	while (at < size && stack[at] == 0x5a) {
		at++;
	}
	return size - at;
}

/* How much of the stack it used, and of which size; exits where it failed. */
static void on_small_stack(const char *place)
{
	size_t size = (size_t)sysconf(_SC_THREAD_STACK_MIN);
	size_t least = getauxval(AT_MINSIGSTKSZ), own_size = size;
	char *stack;
	if (!strcmp(place, "signal")) {
		own_size = (least ? least : 2048) + 4096;
		size = (own_size + 4095) & ~(size_t)4095;
		stack = stack_of(size);
		stack_t own = {.ss_size = own_size};
		own.ss_sp = stack + size - own.ss_size;
		struct sigaction how = {.sa_handler = in_handler,
					.sa_flags = SA_ONSTACK};
		sigaltstack(&own, NULL);
		sigaction(SIGUSR1, &how, NULL);
		raise(SIGUSR1);
	} else {
		pthread_attr_t attributes;
		pthread_t thread;
		stack = stack_of(size);
		pthread_attr_init(&attributes);
		if (pthread_attr_setstack(&attributes, stack, size) ||
		    pthread_create(&thread, &attributes, in_thread, NULL)) {
			exit(95);
		}
		pthread_join(thread, NULL);
	}
	printf("%zu of %zu\n", used(stack, size), own_size);
	if (failed || used(stack, size) > own_size) {
		exit(94);
	}
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		return 98;
	}
	file = argv[2];
	fd = open(file, O_RDWR | O_CREAT, 0600);
	directory = open("/bin/true", O_PATH);
	if (fd < 0 || directory < 0 || ftruncate(fd, 4096) ||
	    syscall(SYS_io_setup, 4L, &context)) {
		return 97;
	}
	mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	setvbuf(stdout, NULL, _IONBF, 0);
	for (char **name = argv + 3; *name; name++) {
		function = *name;
		printf("%s ", function);
		if (!strncmp(function, "_Z", 2) &&
		    !dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL)) {
			return 93;
		}
		if (!strncmp(function, "io_uring_", 9)) {
			int how = RTLD_NOW | RTLD_GLOBAL;
			void *library = dlopen("liburing.so.2", how);
			if (!library) {
				return 93;
			}
			if (!dlsym(library, function)) {
				printf("is not in this liburing\n");
				continue;
			}
		}
		/* What the loader does once is not a call's. */
		if (!call()) {
			printf("is not one of the functions that are called\n");
			return 92;
		}
		if (failed) {
			return 96;
		}
		on_small_stack(argv[1]);
	}
	return 0;
}
