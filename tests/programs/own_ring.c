// build: -pthread
// Fills an io_uring by itself, through the C library's syscall(): syncs of argv[1] in the way of argv[2]. Prints the
// completions' results in the order of submission. Exit 3: not possible here.
//   one       20 times one sync: the head wraps
//   batch     4 writes and 4 syncs at once, linked; one write is an RWF_DSYNC one
//   sqe128, no_sqarray, sqpoll   as `one`, with this flag of io_uring_setup
//   index     as `one`, submitted by the index of a registered ring
//   threads   as `one`, every other by a second thread
//   fork      as `one`, the last 10 in a forked child
//   again     as `one`, each in a ring of its own, which has the descriptor of the one before
//   pipe      one sync, of a pipe
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENTRIES = 8, NO_SQARRAY = 1 << 16 };

static int fd, ring;
static unsigned enter_flags;
static struct io_uring_params p;
static char *sq, *cq, *sqes;
static size_t sq_size, cq_size, sqes_size;
static char text[] = "written";

static uint32_t *word(char *base, uint32_t offset)
{
    return (uint32_t *)(void *)(base + offset);
}

static char *map(size_t size, off_t what)
{
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, what);
    if (at == MAP_FAILED) {
        perror("mmap");
        _exit(1);
    }
    return at;
}

static void set_up(unsigned flags)
{
    memset(&p, 0, sizeof p);
    p.flags = flags;
    ring = (int)syscall(SYS_io_uring_setup, ENTRIES, &p);
    if (ring < 0) {
        perror("io_uring_setup");
        _exit(3);
    }
    sq_size = flags & NO_SQARRAY ? 4096 : p.sq_off.array + p.sq_entries * sizeof(uint32_t);
    cq_size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    sqes_size = p.sq_entries * (flags & IORING_SETUP_SQE128 ? 128 : 64);
    sq = map(sq_size, IORING_OFF_SQ_RING);
    cq = map(cq_size, IORING_OFF_CQ_RING);
    sqes = map(sqes_size, IORING_OFF_SQES);
}

static void take_down(void)
{
    munmap(sq, sq_size);
    munmap(cq, cq_size);
    munmap(sqes, sqes_size);
    close(ring);
}

static void add(struct io_uring_sqe entry)
{
    uint32_t *tail = word(sq, p.sq_off.tail), at = *tail & (p.sq_entries - 1);
    // Not in the queue's own order, where it has one of its own.
    uint32_t place = p.flags & NO_SQARRAY ? at : (p.sq_entries - 1) - at;
    memcpy(sqes + place * (p.flags & IORING_SETUP_SQE128 ? 128 : 64), &entry, sizeof entry);
    if (!(p.flags & NO_SQARRAY))
        word(sq, p.sq_off.array)[at] = place;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
}

static void submit(unsigned count)
{
    int by = enter_flags & IORING_ENTER_REGISTERED_RING ? 0 : ring;
    unsigned wakes = p.flags & IORING_SETUP_SQPOLL ? IORING_ENTER_SQ_WAKEUP : 0;
    long done = syscall(SYS_io_uring_enter, by, count, count, IORING_ENTER_GETEVENTS | enter_flags | wakes, NULL, 0);
    if (done != (long)count) {
        perror("io_uring_enter");
        _exit(1);
    }
    int results[ENTRIES] = {0};
    uint32_t *head = word(cq, p.cq_off.head);
    for (unsigned i = 0; i < count; i++, ++*head) {
        uint32_t mask = *word(cq, p.cq_off.ring_mask);
        struct io_uring_cqe *all = (void *)(cq + p.cq_off.cqes), *one = &all[*head & mask];
        results[one->user_data] = one->res;
    }
    for (unsigned i = 0; i < count; i++)
        printf("%d\n", results[i]);
}

static void sync_once(int data_only)
{
    add((struct io_uring_sqe){
        .opcode = IORING_OP_FSYNC, .fd = fd, .fsync_flags = data_only ? IORING_FSYNC_DATASYNC : 0});
    submit(1);
}

static void *sync_in_thread(void *nothing)
{
    sync_once(0);
    return nothing;
}

static void batch(void)
{
    for (unsigned i = 0; i < ENTRIES; i++) {
        struct io_uring_sqe entry = {.fd = fd, .user_data = i, .flags = i + 1 < ENTRIES ? IOSQE_IO_LINK : 0};
        if (i % 2 == 0) {
            entry.opcode = IORING_OP_WRITE;
            entry.addr = (uintptr_t)text;
            entry.len = sizeof text - 1;
            entry.off = i * entry.len;
            entry.rw_flags = i == 4 ? 2 : 0; // RWF_DSYNC
        } else {
            entry.opcode = IORING_OP_FSYNC;
            entry.fsync_flags = i == 3 ? IORING_FSYNC_DATASYNC : 0;
        }
        add(entry);
    }
    submit(ENTRIES);
}

int main(int argc, char **argv)
{
    const char *way = argc == 3 ? argv[2] : "";
    fd = open(argv[1], O_RDWR | O_CREAT, 0644);
    if (fd < 0 || pwrite(fd, "x", 1, 0) != 1)
        return 2;
    unsigned flags = !strcmp(way, "sqe128")       ? IORING_SETUP_SQE128
                     : !strcmp(way, "no_sqarray") ? NO_SQARRAY
                     : !strcmp(way, "sqpoll")     ? IORING_SETUP_SQPOLL
                                                  : 0;
    set_up(flags);
    if (!strcmp(way, "batch")) {
        batch();
        return 0;
    }
    if (!strcmp(way, "pipe")) {
        int ends[2];
        if (pipe(ends) != 0)
            return 2;
        fd = ends[0];
        sync_once(0);
        return 0;
    }
    if (!strcmp(way, "index")) {
        struct io_uring_rsrc_update update = {.offset = -1u, .data = (unsigned)ring};
        if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_RING_FDS, &update, 1) != 1 || update.offset != 0)
            return 3;
        enter_flags = IORING_ENTER_REGISTERED_RING;
    }
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        if (!strcmp(way, "threads") && i % 2 == 1) {
            if (pthread_create(&thread, NULL, sync_in_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
                return 2;
            continue;
        }
        if (!strcmp(way, "again") && i > 0) {
            int before = ring;
            take_down();
            set_up(0);
            if (ring != before)
                return 2;
        }
        if (!strcmp(way, "fork") && i == 10) {
            fflush(stdout);
            if (fork() != 0) {
                int status;
                wait(&status);
                return status != 0;
            }
        }
        sync_once(i % 3 == 0);
    }
    return 0;
}
