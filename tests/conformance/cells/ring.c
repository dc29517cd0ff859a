// The durability operations of io_uring, through syscall(). Result: the completion's; where it is an errno, that is in
// the note.
#define _GNU_SOURCE
#include "cell.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    int fd;
    char *submissions, *completions;
    struct io_uring_sqe *entries;
    struct io_uring_params p;
} ring;

static void *map(size_t length, off_t what)
{
    void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, what);
    if (at == MAP_FAILED)
        broken("map the ring");
    return at;
}

static uint32_t *word(char *base, uint32_t offset)
{
    return (uint32_t *)(void *)(base + offset);
}

// One operation, submitted and waited for.
static int completed(struct io_uring_sqe operation)
{
    uint32_t *tail = word(ring.submissions, ring.p.sq_off.tail), *head = word(ring.completions, ring.p.cq_off.head);
    uint32_t at = *tail & *word(ring.submissions, ring.p.sq_off.ring_mask);
    ring.entries[at] = operation;
    word(ring.submissions, ring.p.sq_off.array)[at] = at;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
        broken("io_uring_enter");
    uint32_t done = *head & *word(ring.completions, ring.p.cq_off.ring_mask);
    int result = ((struct io_uring_cqe *)(void *)(ring.completions + ring.p.cq_off.cqes))[done].res;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return result;
}

static void told(const char *interface, const char *kind, struct io_uring_sqe operation)
{
    char note[32];
    errno = KEPT;
    int result = completed(operation), after = errno;
    snprintf(note, sizeof note, "completed=%s", result_name(result));
    cell(interface, kind, result < 0 ? 0 : result, after, note);
}

static void each_kind(void)
{
    char zeros[8] = {0};
    size_t count;
    const struct kind *kinds = all_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        const char *kind = kinds[i].name;
        struct io_uring_sqe sync = {.opcode = IORING_OP_FSYNC, .fd = kinds[i].fd};
        told("ring_fsync", kind, sync);
        sync.fsync_flags = IORING_FSYNC_DATASYNC;
        told("ring_fdatasync", kind, sync);
        told("ring_sync_file_range", kind,
             (struct io_uring_sqe){.opcode = IORING_OP_SYNC_FILE_RANGE,
                                   .fd = kinds[i].fd,
                                   .sync_range_flags = SYNC_FILE_RANGE_WRITE});
    }
    told("ring_write_dsync", "regular_rdwr",
         (struct io_uring_sqe){.opcode = IORING_OP_WRITE,
                               .fd = kinds[0].fd,
                               .addr = (uintptr_t)zeros,
                               .len = sizeof zeros,
                               .rw_flags = 0x2}); // RWF_DSYNC
}

static void opens(void)
{
    int fd = completed((struct io_uring_sqe){
        .opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (uintptr_t) "file", .open_flags = O_RDWR | O_SYNC});
    char note[64];
    snprintf(note, sizeof note, "sync=%s", (fcntl(must(fd, "open"), F_GETFL) & O_SYNC) == O_SYNC ? "O_SYNC" : "other");
    cell("ring_openat", "O_SYNC", fd, KEPT, note);
}

void ring_cells(void)
{
    ring.fd = (int)syscall(SYS_io_uring_setup, 4, &ring.p);
    if (ring.fd < 0) {
        printf("# no io_uring here: %s\n", errno_name(errno));
        return;
    }
    ring.submissions = map(ring.p.sq_off.array + ring.p.sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING);
    ring.completions = map(ring.p.cq_off.cqes + ring.p.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    ring.entries = map(ring.p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    each_kind();
    opens();
}
