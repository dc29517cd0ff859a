// FSYNC through liburing, on each kind. Result: the completion's, -errno on failure.
#define _GNU_SOURCE
#include "cell.h"

#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/uio.h>

// What is prepared, submitted and waited for; its completion with the user's data still in it.
static void submitted(const char *interface, const char *kind, struct io_uring *ring, struct io_uring_sqe *entry)
{
    struct io_uring_cqe *completion;
    char note[64];
    io_uring_sqe_set_data64(entry, 0x1234);
    errno = KEPT;
    int result = io_uring_submit(ring), after = errno;
    if (result != 1 || io_uring_wait_cqe(ring, &completion) != 0)
        broken("io_uring_submit");
    snprintf(note, sizeof note, "completed=%s data=%llx flags=%x", result_name(completion->res),
             (unsigned long long)completion->user_data, completion->flags);
    cell(interface, kind, result, after, note);
    io_uring_cqe_seen(ring, completion);
}

static struct io_uring_sqe *fsync_of(struct io_uring *ring, int fd, unsigned flags)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(ring);
    io_uring_prep_fsync(entry, fd, flags);
    return entry;
}

// What the kernel refuses before it comes to the file, a registered file, and the other operations that sync.
static void odd_entries(struct io_uring *ring, int fd)
{
    static char zeros[8];
    struct io_uring_sqe *entry = fsync_of(ring, fd, 0x80);
    submitted("liburing_fsync", "unknown_flag", ring, entry);
    entry = fsync_of(ring, fd, 0);
    entry->addr = (unsigned long)zeros;
    submitted("liburing_fsync", "with_address", ring, entry);
    entry = fsync_of(ring, fd, 0);
    entry->flags |= IOSQE_ASYNC;
    submitted("liburing_fsync", "by_a_worker", ring, entry);
    entry = fsync_of(ring, 0, 0);
    entry->flags |= IOSQE_FIXED_FILE;
    submitted("liburing_fsync", "nothing_registered", ring, entry);
    if (io_uring_register_files(ring, &fd, 1) != 0)
        broken("io_uring_register_files");
    entry = fsync_of(ring, 0, 0);
    entry->flags |= IOSQE_FIXED_FILE;
    submitted("liburing_fsync", "registered", ring, entry);
    entry = fsync_of(ring, 7, 0);
    entry->flags |= IOSQE_FIXED_FILE;
    submitted("liburing_fsync", "not_registered", ring, entry);

    entry = io_uring_get_sqe(ring);
    io_uring_prep_sync_file_range(entry, fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    submitted("liburing_sync_file_range", "regular_rdwr", ring, entry);
    entry = io_uring_get_sqe(ring);
    io_uring_prep_sync_file_range(entry, fd, 0, 0, 0x99);
    submitted("liburing_sync_file_range", "unknown_flag", ring, entry);
    entry = io_uring_get_sqe(ring);
    io_uring_prep_write(entry, fd, zeros, sizeof zeros, 0);
    entry->rw_flags = RWF_DSYNC;
    submitted("liburing_write_dsync", "regular_rdwr", ring, entry);
    entry = io_uring_get_sqe(ring);
    io_uring_prep_openat(entry, AT_FDCWD, "missing", O_RDWR | O_SYNC, 0);
    submitted("liburing_openat", "missing", ring, entry);
}

void liburing_cells(void)
{
    struct io_uring ring;
    size_t count;
    int error = io_uring_queue_init(4, &ring, 0);
    if (error != 0) {
        printf("# no io_uring here: %s\n", errno_name(-error));
        return;
    }
    const struct kind *kinds = all_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        submitted("liburing_fsync", kinds[i].name, &ring, fsync_of(&ring, kinds[i].fd, 0));
        submitted("liburing_fdatasync", kinds[i].name, &ring, fsync_of(&ring, kinds[i].fd, IORING_FSYNC_DATASYNC));
    }
    odd_entries(&ring, kinds[0].fd);
    CELL("msync", "liburings_ring", msync(ring.sq.ring_ptr, ring.sq.ring_sz, MS_SYNC));
    io_uring_queue_exit(&ring);
}
