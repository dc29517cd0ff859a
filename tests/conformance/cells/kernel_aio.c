// FSYNC and FDSYNC by the kernel's own io_submit, on each kind. Result: io_submit's; note: the completion's.
#define _GNU_SOURCE
#include "cell.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void submitted(const char *interface, const char *kind, aio_context_t context, int fd, int operation)
{
    struct iocb request = {.aio_lio_opcode = (uint16_t)operation, .aio_fildes = (uint32_t)fd};
    struct iocb *list[] = {&request};
    struct io_event event;
    char note[32] = "";
    errno = KEPT;
    long result = syscall(SYS_io_submit, context, 1L, list);
    int after = errno;
    if (result == 1) {
        if (syscall(SYS_io_getevents, context, 1L, 1L, &event, NULL) != 1)
            broken("io_getevents");
        snprintf(note, sizeof note, "completed=%s", result_name((long)event.res));
    }
    cell(interface, kind, result, after, note);
}

static long raw_submit(aio_context_t context, long count, void *list)
{
    return syscall(SYS_io_submit, context, count, list);
}

// What the kernel refuses before it comes to the file, and lists that break off.
static void odd_lists(aio_context_t context, int fd)
{
    struct iocb sync = {.aio_lio_opcode = IOCB_CMD_FSYNC, .aio_fildes = (uint32_t)fd};
    struct iocb flagged = sync, sized = sync, unknown = sync, closed = sync, prioritised = sync;
    flagged.aio_rw_flags = 1;
    // A read would be refused for this.
    prioritised.aio_flags = IOCB_FLAG_IOPRIO;
    prioritised.aio_reqprio = (int16_t)0xe000;
    sized.aio_nbytes = 1;
    unknown.aio_lio_opcode = 77;
    closed.aio_fildes = 900;
    struct iocb *breaks_off[] = {&sync, &closed, &sync}, *refused[] = {&flagged}, *with_size[] = {&sized};
    struct io_event events[4];
    long taken;
    struct iocb *prioritiseds[] = {&prioritised}, *unknowns[] = {&unknown}, *null[] = {NULL}, *unreadable[] = {(struct iocb *)8};
    CELL("io_submit_fsync", "no_block", raw_submit(context, 0, breaks_off));
    CELL("io_submit_fsync", "negative_count", raw_submit(context, -1, breaks_off));
    CELL("io_submit_fsync", "with_flags", raw_submit(context, 1, refused));
    CELL("io_submit_fsync", "with_size", raw_submit(context, 1, with_size));
    CELL("io_submit_fsync", "with_a_priority", taken = raw_submit(context, 1, prioritiseds));
    if (taken == 1)
        CELL("io_getevents", "with_a_priority", syscall(SYS_io_getevents, context, 1L, 1L, events, NULL));
    CELL("io_submit_fsync", "unknown_operation", raw_submit(context, 1, unknowns));
    CELL("io_submit_fsync", "null_block", raw_submit(context, 1, null));
    CELL("io_submit_fsync", "unreadable_block", raw_submit(context, 1, unreadable));
    CELL("io_submit_fsync", "unreadable_list", raw_submit(context, 1, (void *)8));
    CELL("io_submit_fsync", "no_context", raw_submit(0, 1, breaks_off));
    CELL("io_submit_fsync", "breaks_off", raw_submit(context, 3, breaks_off));
    CELL("io_getevents", "broken_off", syscall(SYS_io_getevents, context, 1L, 1L, events, NULL));
    // The block stays as the program filled it in.
    CELL("io_submit_fsync", "operation_afterwards", sync.aio_lio_opcode);
}

void kernel_aio_cells(void)
{
    aio_context_t context = 0;
    size_t count;
    if (syscall(SYS_io_setup, 4, &context) != 0) {
        printf("# no kernel aio here: %s\n", errno_name(errno));
        return;
    }
    const struct kind *kinds = all_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        submitted("io_submit_fsync", kinds[i].name, context, kinds[i].fd, IOCB_CMD_FSYNC);
        submitted("io_submit_fdsync", kinds[i].name, context, kinds[i].fd, IOCB_CMD_FDSYNC);
    }
    // It can be synced, and neither read nor written.
    int neither = must(open("file", O_WRONLY | O_RDWR), "open for neither");
    submitted("io_submit_fsync", "open_for_neither", context, neither, IOCB_CMD_FSYNC);
    submitted("io_submit_fdsync", "open_for_neither", context, neither, IOCB_CMD_FDSYNC);
    odd_lists(context, kinds[0].fd);
    syscall(SYS_io_destroy, context);
}
