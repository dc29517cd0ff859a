/* A disk whose flush takes its time, and which knows what a power cut would leave.
 *
 * slow_disk DIRECTORY MIB FLUSH_US DURABLE
 * Serves DIRECTORY/disk by FUSE from memory, for a loop device: a write costs nothing, a flush (which a loop device
 * passes on as FSYNC, drivers/block/loop.c) takes FLUSH_US. Blocks of 4 KiB that begin with STAMP, a writer's number
 * and a serial number are looked at as they come: DURABLE, a file of one number for each writer, holds the highest
 * serial that was written before the beginning of a flush that has ended. Ends when it is unmounted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "stamp.h"

enum { LARGEST = 1 << 20, THREADS = 8 };

static int device;
static char *image;
static size_t size;
static long flush_us;
static uint64_t written[WRITERS]; /* the highest serial so far; under the lock */
static uint64_t *durable;	 /* the same, of what has been flushed */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void reply(uint64_t unique, int error, const void *data, size_t length)
{
	if (error) {
		length = 0;
	}
	struct fuse_out_header head = {(uint32_t)(sizeof head + length), -error, unique};
	struct iovec parts[] = {{&head, sizeof head}, {(void *)(uintptr_t)data, length}};
	if (writev(device, parts, length ? 2 : 1) < 0 && errno != ENOENT) { /* the request was interrupted */
		fail("slow_disk: reply");
	}
}

static struct fuse_attr attributes(uint64_t node)
{
	struct fuse_attr a = {.ino = node, .nlink = 1, .blksize = BLOCK};
	a.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0600;
	a.size = node == FUSE_ROOT_ID ? 0 : size;
	return a;
}

static void write_to_image(uint64_t unique, const struct fuse_write_in *in)
{
	const char *data = (const char *)(in + 1);
	struct fuse_write_out out = {.size = in->size};
	if (in->offset > size || in->size > size - in->offset) {
		reply(unique, ENOSPC, NULL, 0);
		return;
	}
	memcpy(image + in->offset, data, in->size);
	pthread_mutex_lock(&lock);
	for (size_t at = 0; at + BLOCK <= in->size; at += BLOCK) {
		const struct stamp *stamp = (const void *)(data + at);
		if (stamp->mark == STAMP && stamp->writer < WRITERS && stamp->serial > written[stamp->writer]) {
			written[stamp->writer] = stamp->serial;
		}
	}
	pthread_mutex_unlock(&lock);
	reply(unique, 0, &out, sizeof out);
}

static void flush(uint64_t unique)
{
	uint64_t before[WRITERS];
	struct timespec time = {flush_us / 1000000, flush_us % 1000000 * 1000};
	pthread_mutex_lock(&lock);
	memcpy(before, written, sizeof before);
	pthread_mutex_unlock(&lock);
	nanosleep(&time, NULL);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < WRITERS; i++) {
		if (before[i] > durable[i]) {
			__atomic_store_n(&durable[i], before[i], __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&lock);
	reply(unique, 0, NULL, 0);
}

static void answer(const struct fuse_in_header *head)
{
	const void *in = head + 1;
	const uint64_t unique = head->unique, forever = 1u << 30;
	switch (head->opcode) {
	case FUSE_INIT: {
		const struct fuse_init_in *init = in;
		struct fuse_init_out out = {
			.major = FUSE_KERNEL_VERSION, .minor = 31, .max_readahead = init->max_readahead,
			.flags = init->flags & (FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_MAX_PAGES), .max_background = 64,
			.congestion_threshold = 48, .max_write = LARGEST, .time_gran = 1, .max_pages = LARGEST / BLOCK};
		reply(unique, 0, &out, sizeof out);
		break;
	}
	case FUSE_LOOKUP: {
		struct fuse_entry_out out = {.nodeid = 2, .entry_valid = forever, .attr_valid = forever, .attr = attributes(2)};
		reply(unique, strcmp(in, "disk") ? ENOENT : 0, &out, sizeof out);
		break;
	}
	case FUSE_GETATTR:
	case FUSE_SETATTR: {
		struct fuse_attr_out out = {.attr_valid = forever, .attr = attributes(head->nodeid)};
		reply(unique, 0, &out, sizeof out);
		break;
	}
	case FUSE_OPEN: {
		struct fuse_open_out out = {.open_flags = FOPEN_DIRECT_IO}; /* no cache of its own beneath the loop device */
		reply(unique, 0, &out, sizeof out);
		break;
	}
	case FUSE_READ: {
		const struct fuse_read_in *read = in;
		size_t left = read->offset < size ? size - read->offset : 0;
		reply(unique, 0, image + (left ? read->offset : 0), read->size < left ? read->size : left);
		break;
	}
	case FUSE_WRITE:
		write_to_image(unique, in);
		break;
	case FUSE_FSYNC:
		flush(unique);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		reply(unique, 0, NULL, 0);
		break;
	case FUSE_FORGET: /* these want no answer */
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(unique, ENOSYS, NULL, 0);
	}
}

static void *serve(void *nothing)
{
	const size_t room = LARGEST + BLOCK;
	char *request = aligned_alloc(BLOCK, room);
	if (!request) {
		fail("slow_disk: memory");
	}
	for (;;) {
		if (read(device, request, room) > 0) {
			answer((const void *)request);
		} else if (errno == ENODEV) { /* unmounted */
			exit(0);
		} else if (errno != EINTR && errno != ENOENT) {
			fail("slow_disk: /dev/fuse");
		}
	}
	return nothing;
}

int main(int argc, char **argv)
{
	char options[128];
	pthread_t thread;
	if (argc != 5) {
		return 2;
	}
	size = (size_t)atol(argv[2]) << 20;
	flush_us = atol(argv[3]);
	image = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int file = open(argv[4], O_RDWR);
	durable = mmap(NULL, sizeof written, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (image == MAP_FAILED || durable == MAP_FAILED || device < 0) {
		fail("slow_disk");
	}
	snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (mount("slow_disk", argv[1], "fuse.slow_disk", 0, options) != 0) {
		fail(argv[1]);
	}
	for (int i = 1; i < THREADS; i++) {
		if (pthread_create(&thread, NULL, serve, NULL) != 0) {
			fail("slow_disk: thread");
		}
	}
	serve(NULL);
}
