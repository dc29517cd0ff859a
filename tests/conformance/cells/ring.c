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

static const struct {
    const char *kind, *registered;
    int64_t offset;
    uint32_t length;
} ranges[] = {
    {"whole", "registered_whole", 0, 0},
    {"one_page", "registered_one_page", 4096, 4096},
    {"negative_offset", "registered_negative_offset", -1, 0},
    {"lowest_offset", "registered_lowest_offset", INT64_MIN, 4096},
    {"overflow", "registered_overflow", INT64_MAX, 2},
};

// On parts of a file, and on files that only the ring knows.
static void parts_of_files(int fd, int pipe)
{
    int files[] = {fd, pipe};
    if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, files, 2) != 0)
        broken("register files");
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        struct io_uring_sqe sync = {
            .opcode = IORING_OP_FSYNC, .fd = fd, .off = (uint64_t)ranges[i].offset, .len = ranges[i].length};
        struct io_uring_sqe range = sync;
        range.opcode = IORING_OP_SYNC_FILE_RANGE;
        range.sync_range_flags = SYNC_FILE_RANGE_WRITE;
        told("ring_fsync", ranges[i].kind, sync);
        told("ring_sync_file_range", ranges[i].kind, range);
        sync.flags = range.flags = IOSQE_FIXED_FILE;
        sync.fd = range.fd = 0;
        told("ring_fsync", ranges[i].registered, sync);
        told("ring_sync_file_range", ranges[i].registered, range);
    }
    struct io_uring_sqe odd = {.opcode = IORING_OP_SYNC_FILE_RANGE, .fd = fd, .sync_range_flags = 0x99};
    told("ring_sync_file_range", "bad_flags", odd);
    odd.sync_range_flags = SYNC_FILE_RANGE_WRITE;
    odd.flags = IOSQE_FIXED_FILE;
    odd.fd = 1;
    told("ring_sync_file_range", "registered_pipe", odd);
    told("ring_fsync", "registered_pipe",
         (struct io_uring_sqe){.opcode = IORING_OP_FSYNC, .flags = IOSQE_FIXED_FILE, .fd = 1});
}

// What of a ring is mapped is no file.
static void mapped_parts(void)
{
    CELL("msync", "ring_queue", msync(ring.submissions, 4096, MS_SYNC));
    CELL("msync", "ring_entries", msync(ring.entries, 64, MS_SYNC));
    CELL("msync", "ring_completions", msync(ring.completions, 4096, MS_SYNC));
    CELL("msync", "ring_queue_async", msync(ring.submissions, 4096, MS_ASYNC));
}

static int set_up(uint32_t flags)
{
    ring.p = (struct io_uring_params){.flags = flags};
    ring.fd = (int)syscall(SYS_io_uring_setup, 4, &ring.p);
    if (ring.fd < 0)
        return 0;
    ring.submissions = map(ring.p.sq_off.array + ring.p.sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING);
    ring.completions = map(ring.p.cq_off.cqes + ring.p.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    ring.entries = map(ring.p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    return 1;
}

// One may only sync, and another polls for what it completes.
static void odd_rings(int fd)
{
    struct io_uring_sqe sync = {.opcode = IORING_OP_FSYNC, .fd = fd};
    struct io_uring_restriction only[] = {{.opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_FSYNC}};
    if (set_up(IORING_SETUP_R_DISABLED)) {
        if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_RESTRICTIONS, only, 1) != 0 ||
            syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0) != 0)
            broken("restrict the ring");
        told("ring_fsync", "only_fsync_allowed", sync);
    }
    if (set_up(IORING_SETUP_IOPOLL))
        told("ring_fsync", "ring_that_polls", sync);
}

void ring_cells(void)
{
    int ends[2];
    if (!set_up(0)) {
        printf("# no io_uring here: %s\n", errno_name(errno));
        return;
    }
    each_kind();
    opens();
    must(pipe(ends), "pipe");
    int fd = must(open("file", O_RDWR), "file");
    parts_of_files(fd, ends[0]);
    mapped_parts();
    odd_rings(fd);
}
