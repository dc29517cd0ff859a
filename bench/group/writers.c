/* Many writers, each of which writes a block and waits until it is safe.
 *
 * writers DIRECTORY COUNT processes|threads own|one append|overwrite SECONDS DURABLE
 * "one": one file for all of them. "overwrite": sixteen blocks of each writer's own, in place, with fdatasync; else
 * fsync. Prints how many blocks were acknowledged, in how many seconds, and how many of them the disk had not flushed
 * by then (DURABLE, see slow_disk.c; "-" where no such disk lies beneath: then nothing is looked at and -1 printed).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stamp.h"

enum { PLACES = 16 };

static struct {
	int go, stop;
	unsigned ready;
	uint64_t acknowledged, undurable;
} *shared;
static const char *directory;
static int one, overwrite;
static const uint64_t *durable;

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what)
{
	perror(what);
	_exit(1);
}

static void *writer(void *number)
{
	char path[4096], block[BLOCK];
	uint64_t me = (uintptr_t)number;
	struct stamp *stamp = (void *)block;
	snprintf(path, sizeof path, "%s/%lu", directory, one ? 0 : me);
	int fd = open(path, O_RDWR | O_CREAT | (overwrite ? 0 : O_APPEND), 0644);
	if (fd < 0) {
		fail(path);
	}
	memset(block, 'x', sizeof block);
	off_t base = one ? (off_t)me * PLACES * BLOCK : 0;
	for (int i = 0; overwrite && i < PLACES; i++) {
		if (pwrite(fd, block, BLOCK, base + (off_t)i * BLOCK) != BLOCK || fsync(fd) != 0) {
			fail(path);
		}
	}
	/* Greater than that of any earlier run on the same disk. */
	*stamp = (struct stamp){STAMP, me, (uint64_t)(now_s() * 1e6)};
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&shared->go, __ATOMIC_ACQUIRE)) {
		usleep(1000);
	}
	for (unsigned i = 0; !__atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE); i++) {
		stamp->serial++;
		ssize_t done = overwrite ? pwrite(fd, block, BLOCK, base + (off_t)(i % PLACES) * BLOCK)
					 : write(fd, block, BLOCK);
		if (done != BLOCK || (overwrite ? fdatasync(fd) : fsync(fd)) != 0) {
			fail(path);
		}
		if (durable && __atomic_load_n(&durable[me], __ATOMIC_ACQUIRE) < stamp->serial) {
			__atomic_add_fetch(&shared->undurable, 1, __ATOMIC_RELAXED);
		}
		__atomic_add_fetch(&shared->acknowledged, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[WRITERS];
	pid_t children[WRITERS];
	if (argc != 8) {
		return 2;
	}
	directory = argv[1];
	uintptr_t count = (uintptr_t)atol(argv[2]);
	int processes = !strcmp(argv[3], "processes");
	one = !strcmp(argv[4], "one");
	overwrite = !strcmp(argv[5], "overwrite");
	if (count < 1 || count > WRITERS) {
		return 2;
	}
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (strcmp(argv[7], "-") != 0) {
		int file = open(argv[7], O_RDONLY);
		if (file < 0) {
			fail(argv[7]);
		}
		void *at = mmap(NULL, WRITERS * sizeof *durable, PROT_READ, MAP_SHARED, file, 0);
		if (at == MAP_FAILED) {
			fail(argv[7]);
		}
		durable = at;
	}
	for (uintptr_t i = 0; i < count; i++) {
		if (!processes) {
			pthread_create(&threads[i], NULL, writer, (void *)i);
		} else if (!(children[i] = fork())) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			writer((void *)i);
			_exit(0);
		}
	}
	while (__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST) < count) {
		if (processes && waitpid(-1, NULL, WNOHANG) != 0) {
			return 1; /* it said why */
		}
		usleep(1000);
	}
	double began = now_s();
	__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
	usleep((useconds_t)(atof(argv[6]) * 1e6));
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
	for (uintptr_t i = 0; i < count; i++) {
		int status = 0;
		if (processes ? waitpid(children[i], &status, 0) != children[i] || status : pthread_join(threads[i], NULL)) {
			return 1;
		}
	}
	/* All that began has ended by now, and is counted. */
	double took = now_s() - began;
	printf("%lu %.6f %ld\n", shared->acknowledged, took, durable ? (long)shared->undurable : -1);
	return 0;
}
