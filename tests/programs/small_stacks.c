/* Calls each function that refit answers, on a stack as small as a thread or a
 * signal handler may have, and prints how much of it was used.
 *
 * usage: small_stacks FUNCTION thread|signal FILE; it prints BYTES of SIZE.
 * Below the stack lies a page that nobody may touch.
 */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/aio_abi.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
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

static void call(void)
{
	struct open_how how = {.flags = O_RDWR | O_SYNC};
	struct iovec part = {"x", 1};
#define NAMED(name, how)                                                       \
	if (!strcmp(function, #name)) {                                        \
		failed = (how) != 0;                                           \
		return;                                                        \
	}
	NAMED(fsync, fsync(fd))
	NAMED(fdatasync, fdatasync(fd))
	NAMED(sync, (sync(), 0))
	NAMED(syncfs, syncfs(fd))
	NAMED(sync_file_range, sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE))
	NAMED(msync, msync(mapped, 4096, MS_SYNC))
	NAMED(open, opened(open(file, O_RDWR | O_SYNC)))
	NAMED(openat, opened(openat(AT_FDCWD, file, O_RDWR | O_DSYNC)))
	NAMED(creat, opened(creat(file, 0600)))
	NAMED(openat2, opened((int)syscall(SYS_openat2, AT_FDCWD, file, &how,
					   sizeof how)))
	NAMED(fcntl, fcntl(fd, F_SETFL, O_SYNC))
	NAMED(pwritev2, pwritev2(fd, &part, 1, 0, RWF_SYNC) != 1)
	NAMED(write, write(fd, "x", 1) != 1)
	NAMED(close, close(dup(fd)))
	NAMED(io_submit, submit())
	NAMED(posix_spawn, spawned(posix_spawn, "/bin/true"))
	NAMED(posix_spawnp, spawned(posix_spawnp, "true"))
	NAMED(execve, IN_A_CHILD(execve("/bin/true", program, environ)))
	NAMED(execv, IN_A_CHILD(execv("/bin/true", program)))
	NAMED(execvp, IN_A_CHILD(execvp("true", program)))
	NAMED(execvpe, IN_A_CHILD(execvpe("true", program, environ)))
	NAMED(execl, IN_A_CHILD(execl("/bin/true", "true", (char *)NULL)))
	NAMED(execlp, IN_A_CHILD(execlp("true", "true", (char *)NULL)))
	NAMED(fexecve, IN_A_CHILD(fexecve(directory, program, environ)))
	NAMED(execveat, IN_A_CHILD(execveat(directory, "", program, environ,
					    AT_EMPTY_PATH)))
	NAMED(malloc, (free(malloc(100)), 0))
	NAMED(realloc, (free(realloc(malloc(100), 1 << 20)), 0))
	failed = 1;
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

int main(int argc, char **argv)
{
	if (argc != 4) {
		return 98;
	}
	function = argv[1];
	file = argv[3];
	fd = open(file, O_RDWR | O_CREAT, 0600);
	directory = open("/bin/true", O_PATH);
	if (fd < 0 || directory < 0 || ftruncate(fd, 4096) ||
	    syscall(SYS_io_setup, 4L, &context)) {
		return 97;
	}
	mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	call(); /* what the loader does once is not a call's */
	if (failed) {
		return 96;
	}
	size_t size = (size_t)sysconf(_SC_THREAD_STACK_MIN);
	size_t least = getauxval(AT_MINSIGSTKSZ);
	if (!strcmp(argv[2], "signal")) {
		size = ((least ? least : 2048) + 4096 + 15) & ~(size_t)15;
		size = (size + 4095) & ~(size_t)4095;
		stack_t own = {.ss_size = (least ? least : 2048) + 4096};
		char *stack = stack_of(size);
		own.ss_sp = stack + size - own.ss_size;
		struct sigaction how = {.sa_handler = in_handler,
					.sa_flags = SA_ONSTACK};
		sigaltstack(&own, NULL);
		sigaction(SIGUSR1, &how, NULL);
		raise(SIGUSR1);
		printf("%zu of %zu\n", used(stack, size), own.ss_size);
		return failed || used(stack, size) > own.ss_size;
	}
	pthread_attr_t attributes;
	pthread_t thread;
	char *stack = stack_of(size);
	pthread_attr_init(&attributes);
	if (pthread_attr_setstack(&attributes, stack, size) ||
	    pthread_create(&thread, &attributes, in_thread, NULL)) {
		return 95;
	}
	pthread_join(thread, NULL);
	printf("%zu of %zu\n", used(stack, size), size);
	return failed;
}
