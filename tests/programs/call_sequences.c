// build: -pthread
/* call_sequences FIRST COUNT DIR: COUNT sequences of calls that follow from their number alone, in DIR, which is empty.
 * Each call on a line: what was asked, the result, the errno after it (`kept` where a success left it), and what can be
 * seen of it. What differs from run to run (addresses, times, names of temporary files) is not printed, nor what refit
 * is documented to change: the flags that F_GETFL shows of an open file, and fsync of a descriptor of /proc, which is
 * not asked. After each sequence the content of its files.
 * call_sequences child KINDS: what a sequence's own exec does: a sync of each descriptor that it was left. */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT 77
#define SLOTS 12
#define PAGE 4096
/* Where the kernel places nothing by itself: far below where it begins, and above the program. */
#if UINTPTR_MAX > UINT32_MAX
#define FAR_AWAY ((char *)0x100000000000)
#else
#define FAR_AWAY ((char *)0x20000000)
#endif
#define LONE_O_SYNC 04000000
#ifndef __GLIBC__ /* musl before 1.2.5 has none */
#define pwritev2(fd, parts, count, offset, how) syscall(SYS_pwritev2, fd, parts, count, offset, 0L, how)
#endif
#if LONG_MAX > INT32_MAX /* how 64 bits are passed to syscall(2) */
#define HIGH(number) 0L
#define WIDE(number) (number)
#else
#define HIGH(number) ((number) >> 31)
#define WIDE(number) (number), HIGH(number)
#endif
#define LENGTH(array) (sizeof(array) / sizeof *(array))

enum kind { NONE, FILE_, DIRECT, DIRECTORY, PIPE, SOCKET, MEMORY, PATH, PROC, DEVICE };

static struct { int fd; enum kind kind; } slots[SLOTS];
static uint64_t state;
static unsigned long number;
static int step;
static const char *program;
static char *mapping;
static _Alignas(PAGE) char buffer[4 * PAGE];
static volatile int signalled, signal_failed;

static unsigned long draw(unsigned long below) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return (state >> 11) % below;
}

static int one_in(unsigned long n) { return draw(n) == 0; }

#define ANY(array) ((array)[draw(LENGTH(array))])

/* A line; errno is that of the call, which began with KEPT. */
static long told(long result, const char *format, ...) {
    int after = errno;
    char text[200];
    va_list more;
    va_start(more, format);
    vsnprintf(text, sizeof text, format, more);
    va_end(more);
    if (after == KEPT) printf("%lu.%d %s = %ld kept\n", number, step, text, result);
    else printf("%lu.%d %s = %ld errno %d\n", number, step, text, result, after);
    errno = KEPT;
    return result;
}

static uint64_t hash(uint64_t so_far, const void *bytes, size_t length) {
    for (const unsigned char *at = bytes; length--; at++) so_far = (so_far ^ *at) * 1099511628211u;
    return so_far;
}

/* ---- descriptors ---- */

static int any_slot(void) { return (int)draw(SLOTS); }

static enum kind kind_of(int fd) {
    for (int i = 0; i < SLOTS; i++) if (slots[i].kind && slots[i].fd == fd) return slots[i].kind;
    return fd >= 0 && fd < 3 ? DEVICE : NONE;
}

/* A descriptor, or a number that is none, which may have been one before. */
static int any_fd(enum kind *kind) {
    static const int odd[] = {-1, -100, 977, 2147483647, -2147483647};
    int fd = ANY(odd);
    if (!one_in(12)) {
        for (int tries = 0; tries < 8; tries++) {
            int i = any_slot();
            if (slots[i].kind == NONE && !one_in(6)) continue;
            fd = slots[i].fd;
            break;
        }
    }
    *kind = kind_of(fd);
    return fd;
}

static void forget(int fd) {
    for (int i = 0; i < SLOTS; i++) if (slots[i].kind && slots[i].fd == fd) slots[i].kind = NONE;
}

static void keep(int fd, enum kind kind) {
    if (fd < 0) return;
    forget(fd);
    int i = any_slot();
    if (slots[i].kind) { close(slots[i].fd); slots[i].kind = NONE; }
    slots[i].fd = fd; slots[i].kind = kind;
}

static void opened(int fd, enum kind kind) {
    struct stat about;
    if (fd < 0) return;
    if (fstat(fd, &about) == 0 && kind != PROC)
        printf("  mode %o links %lu size %ld fd flags %d\n", about.st_mode, (unsigned long)about.st_nlink,
               S_ISREG(about.st_mode) ? (long)about.st_size : -1L, fcntl(fd, F_GETFD));
    if (kind == FILE_ && S_ISDIR(about.st_mode)) kind = DIRECTORY;
    errno = KEPT;
    keep(fd, kind);
}

static const char *any_path(void) {
    static const char *const paths[] = {"f0", "f1", "f2", "f3", "f0", "f1", "d", "d/g", "link", "dangling", "", "gone/x",
                                        "f0/x", ".", "d/../f2", "loop"};
    return ANY(paths);
}

static int any_flags(void) {
    static const int bits[] = {O_CREAT, O_CREAT, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_NONBLOCK, O_SYNC, O_SYNC, O_DSYNC,
                               O_DSYNC, LONE_O_SYNC, O_NOATIME, O_CLOEXEC, O_NOFOLLOW, O_DIRECTORY, O_DIRECT, O_NOCTTY};
    int flags = one_in(8) ? (int)draw(4) : O_RDWR;
    for (unsigned long count = draw(5); count--;) flags |= ANY(bits);
    if (one_in(25)) flags |= O_PATH;
    /* Only what is aligned is written there. */
    if (flags & O_DIRECT) flags &= ~O_APPEND;
    return flags;
}

static enum kind of_flags(int flags) {
    return flags & O_PATH ? PATH : flags & O_DIRECT ? DIRECT : FILE_;
}

static int any_directory(void) {
    enum kind kind;
    return one_in(3) ? any_fd(&kind) : AT_FDCWD;
}

static void open_one(void) {
    static const int modes[] = {0600, 0644, 0666, 0400, 0, 06755, 0200};
    const char *path = any_path();
    int flags = any_flags(), mode = ANY(modes), at = any_directory();
    enum kind kind = of_flags(flags);
    errno = KEPT;
    switch (draw(10)) {
    case 0: case 1:
        opened((int)told(open(path, flags, mode), "open %s %o %o", path, flags, mode), kind); break;
    case 2:
        opened((int)told(openat(at, path, flags, mode), "openat %d %s %o %o", at, path, flags, mode), kind); break;
    case 3:
        opened((int)told(creat(path, mode), "creat %s %o", path, mode), FILE_); break;
    case 4:
        opened((int)told(syscall(SYS_openat, at, path, flags, mode), "SYS_openat %d %s %o %o", at, path, flags, mode), kind);
        break;
    case 5: {
        static const uint64_t resolves[] = {0, 0, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH, RESOLVE_NO_XDEV, 1u << 30};
        static const size_t sizes[] = {sizeof(struct open_how), sizeof(struct open_how), sizeof(struct open_how) + 8, 8, 0};
        struct { struct open_how how; uint64_t more; } asked = {{0}, 0};
        asked.how.flags = (uint64_t)flags | (one_in(20) ? 1ull << 40 : 0);
        asked.how.mode = flags & O_CREAT || one_in(10) ? (uint64_t)mode : 0;
        asked.how.resolve = ANY(resolves);
        asked.more = one_in(10);
        size_t size = ANY(sizes);
        opened((int)told(syscall(SYS_openat2, at, path, &asked, size), "openat2 %d %s %llo %llo %llx %zu %d", at, path,
                         (unsigned long long)asked.how.flags, (unsigned long long)asked.how.mode,
                         (unsigned long long)asked.how.resolve, size, (int)asked.more), kind);
        break;
    }
    case 6:
        flags = O_TMPFILE | (flags & (O_SYNC | O_DSYNC | O_DIRECT | O_EXCL | O_CLOEXEC | O_ACCMODE));
        opened((int)told(open("d", flags, mode), "open unnamed %o %o", flags, mode), of_flags(flags)); break;
    case 7: {
        char name[] = "tXXXXXX";
        int fd = (int)told(mkostemp(name, flags & (O_SYNC | O_DSYNC | O_CLOEXEC)), "mkostemp %o", flags);
        if (fd >= 0) unlink(name);
        opened(fd, FILE_);
        break;
    }
    case 8:
        opened((int)told(openat(at, path, flags & ~(O_CREAT | O_TRUNC)), "openat %d %s %o", at, path,
                         flags & ~(O_CREAT | O_TRUNC)), kind);
        break;
    default: {
        const char *nowhere = one_in(2) ? NULL : (const char *)8;
        told(open(nowhere, flags, mode), "open nowhere %o", flags);
    }
    }
}

static void make_one(void) {
    int pair[2] = {-1, -1};
    enum kind kind;
    errno = KEPT;
    switch (draw(8)) {
    case 0:
        if (told(pipe2(pair, O_NONBLOCK), "pipe2") == 0) { keep(pair[0], PIPE); keep(pair[1], PIPE); }
        break;
    case 1:
        if (told(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), "socketpair") == 0) {
            keep(pair[0], SOCKET);
            keep(pair[1], SOCKET);
        }
        break;
    case 2: keep((int)told(syscall(SYS_memfd_create, "m", 0), "memfd_create"), MEMORY); break;
    case 3: keep((int)told(open(one_in(2) ? "/proc/self/status" : "/proc/self", O_RDONLY), "open /proc"), PROC); break;
    case 4: keep((int)told(open("/dev/null", O_RDWR | O_DSYNC), "open /dev/null"), DEVICE); break;
    case 5: keep((int)told(open("d", O_RDONLY | O_DIRECTORY | (one_in(2) ? O_SYNC : 0)), "open d"), DIRECTORY); break;
    case 6: {
        int fd = any_fd(&kind);
        keep((int)told(one_in(2) ? dup(fd) : fcntl(fd, F_DUPFD_CLOEXEC, 5), "dup %d", fd), kind);
        break;
    }
    default: {
        int fd = any_fd(&kind), onto = slots[any_slot()].kind ? slots[any_slot()].fd : 30;
        if (onto < 3) onto = 30;
        int result = (int)told(dup2(fd, onto), "dup2 %d %d", fd, onto);
        if (result >= 0) {
            if (result != fd) keep(result, kind);
            errno = KEPT;
        }
    }
    }
}

static void change_one(void) {
    enum kind kind;
    int fd = any_fd(&kind);
    errno = KEPT;
    switch (draw(7)) {
    case 0: case 1:
        if (fd >= 0 && fd < 3) break;
    {
        int result = close(fd);
        /* musl does not keep it while a thread of its aio ends. */
        if (result == 0) errno = KEPT;
        told(result, "close %d", fd);
        forget(fd);
        break;
    }
    case 2: {
        static const char *const names[] = {"f0", "f1", "f2", "f3", "d/g"};
        const char *from = ANY(names), *to = ANY(names);
        told(rename(from, to), "rename %s %s", from, to);
        break;
    }
    case 3: { const char *path = any_path(); told(unlink(path), "unlink %s", path); break; }
    case 4: {
        long length = (long)draw(5) * PAGE;
        told(ftruncate(fd, length), "ftruncate %d %ld", fd, length);
        break;
    }
    case 5: {
        int flags = (one_in(2) && kind != DIRECT ? O_APPEND : 0) | O_NONBLOCK | (kind == DIRECT ? O_DIRECT : 0) |
                    (one_in(3) ? O_SYNC : 0);
        told(fcntl(fd, F_SETFL, flags), "F_SETFL %d %o", fd, flags);
        break;
    }
    default: {
        int seen = fcntl(fd, F_GETFL);
        if (seen >= 0) seen &= ~(O_SYNC | O_DSYNC | O_DIRECT | O_NOFOLLOW);
        told(seen, "F_GETFL %d", fd);
    }
    }
}

/* ---- content ---- */

static size_t fill(void) {
    size_t length = (draw(3) + 1) * PAGE;
    memset(buffer, (int)draw(256), length);
    return length;
}

static void write_one(void) {
    static const int flags[] = {RWF_SYNC, RWF_DSYNC, RWF_SYNC | RWF_DSYNC, 0, 1 << 20, RWF_APPEND, RWF_APPEND | RWF_SYNC};
    enum kind kind;
    int fd = any_fd(&kind);
    int is_direct = kind == DIRECT;
    size_t length = fill();
    if (!is_direct && one_in(2)) length = draw(300);
    long offset = (long)draw(4) * PAGE + (is_direct ? 0 : (long)draw(100));
    if (one_in(15)) offset = -(long)draw(3);
    /* The end of a file may be anywhere. */
    int how = ANY(flags);
    if (is_direct) { how &= ~RWF_APPEND; if (offset < 0) offset = 0; }
    struct iovec parts[2] = {{buffer, length}, {buffer, is_direct ? 0 : draw(100)}};
    int count = is_direct ? 1 : (int)draw(4) - (int)one_in(9);
    if (count > 2) count = 2;
    errno = KEPT;
    switch (draw(7)) {
    case 0: if (!is_direct) told(write(fd, buffer, length), "write %d %zu", fd, length); break;
    case 1: told(pwrite(fd, buffer, length, offset), "pwrite %d %zu %ld", fd, length, offset); break;
    case 2: case 3: case 4:
        told(pwritev2(fd, parts, count, offset, how), "pwritev2 %d %zu %d %ld %x", fd, length, count, offset, how); break;
    case 5:
        told(syscall(SYS_pwritev2, fd, parts, count, offset, HIGH(offset), how), "SYS_pwritev2 %d %zu %d %ld %x", fd, length, count,
             offset, how);
        break;
    default: {
        memset(buffer, 0, sizeof buffer);
        long got = pread(fd, buffer, PAGE, is_direct && offset < 0 ? 0 : offset);
        if (kind != PROC && kind != DEVICE)
            told(got, "pread %d %ld: %016lx", fd, offset, (unsigned long)hash(1, buffer, PAGE));
        errno = KEPT;
    }
    }
}

/* ---- syncs ---- */

static void sync_one(void) {
    static const unsigned ranges[] = {0, 1, 2, 4, 7, 3, 8, 0x99, 1u << 31};
    enum kind kind;
    int fd = any_fd(&kind);
    long offset = one_in(8) ? -(long)draw(3) : (long)draw(9) * 1000, length = one_in(8) ? -1 : (long)draw(9) * 1000;
    if (one_in(15)) length = LONG_MAX;
    unsigned how = ANY(ranges);
    int is_proc = kind == PROC;
    errno = KEPT;
    switch (draw(12)) {
    case 0: case 1: if (!is_proc) told(fsync(fd), "fsync %d", fd); break;
    case 2: case 3: if (!is_proc) told(fdatasync(fd), "fdatasync %d", fd); break;
    case 4: if (!is_proc) told(syscall(SYS_fsync, fd), "SYS_fsync %d", fd); break;
    case 5: if (!is_proc) told(syscall(SYS_fdatasync, fd), "SYS_fdatasync %d", fd); break;
    case 6: case 7:
        told(sync_file_range(fd, offset, length, how), "sync_file_range %d %ld %ld %x", fd, offset, length, how); break;
    case 8:
#ifdef SYS_sync_file_range /* not on arm */
        told(syscall(SYS_sync_file_range, fd, WIDE(offset), WIDE(length), how), "SYS_sync_file_range %d %ld %ld %x", fd,
             offset, length, how);
#endif
        break;
    case 9: if (fd < 0 || one_in(8)) told(syncfs(fd), "syncfs %d", fd); break;
    case 10: if (one_in(100)) { sync(); told(0, "sync"); } break;
    default: if (fd < 0 || one_in(8)) told(syscall(SYS_syncfs, fd), "SYS_syncfs %d", fd);
    }
}

static void msync_one(void) {
    static const int flags[] = {MS_SYNC, MS_SYNC, MS_ASYNC, 0, MS_SYNC | MS_INVALIDATE, MS_SYNC | MS_ASYNC, MS_INVALIDATE,
                                0x80, MS_SYNC | 0x100};
    static const size_t lengths[] = {0, 1, PAGE, 2 * PAGE, 4 * PAGE, 8 * PAGE, (size_t)-1, (size_t)-PAGE};
    size_t at = draw(9) * PAGE + (one_in(6) ? draw(PAGE) : 0), length = ANY(lengths);
    int how = ANY(flags);
    char *from = one_in(12) ? (char *)(uintptr_t)(draw(3) * PAGE) : mapping + at;
    long from_start = from == mapping + at ? (long)at : -(long)(uintptr_t)from - 1;
    if (one_in(3)) mapping[draw(2) * PAGE + draw(PAGE)] = (char)draw(256);
    errno = KEPT;
    if (one_in(3)) told(syscall(SYS_msync, from, length, how), "SYS_msync %ld %zx %x", from_start, length, how);
    else told(msync(from, length, how), "msync %ld %zx %x", from_start, length, how);
}

static void aio_one(void) {
    enum kind kind;
    int fd = any_fd(&kind), how = one_in(8) ? 12345 : one_in(2) ? O_SYNC : O_DSYNC;
    if (kind == PROC) return;
    struct aiocb one = {.aio_fildes = fd, .aio_sigevent = {.sigev_notify = SIGEV_NONE}};
    errno = KEPT;
    int result = aio_fsync(how, &one);
    /* musl does not keep it. */
    if (result == 0) errno = KEPT;
    if (told(result, "aio_fsync %d %o", fd, how) == 0) {
        const struct aiocb *all[] = {&one};
        while (aio_error(&one) == EINPROGRESS) aio_suspend(all, 1, NULL);
        int error = aio_error(&one);
        printf("  aio %d %ld\n", error, (long)aio_return(&one));
    }
    errno = KEPT;
}

static void kernel_aio_one(void) {
    aio_context_t context = 0;
    enum kind kind;
    int fd = any_fd(&kind), what = (int)draw(4);
    static const int opcodes[] = {IOCB_CMD_FSYNC, IOCB_CMD_FDSYNC, IOCB_CMD_PWRITE, 99};
    if (kind == PROC || syscall(SYS_io_setup, 4, &context)) return;
    size_t length = fill();
    struct iocb one = {.aio_fildes = (uint32_t)fd, .aio_lio_opcode = (uint16_t)opcodes[what], .aio_data = 5};
    if (opcodes[what] == IOCB_CMD_PWRITE) {
        one.aio_buf = (uint64_t)(uintptr_t)buffer;
        one.aio_nbytes = length;
        one.aio_rw_flags = one_in(2) ? RWF_DSYNC : 0;
    }
    struct iocb *all[] = {&one};
    errno = KEPT;
    if (told(syscall(SYS_io_submit, context, 1, all), "io_submit %d %d", fd, opcodes[what]) == 1) {
        struct io_event done = {0};
        /* Work of the kernel for an io_uring that was closed interrupts it too (fs/aio.c, signal_pending). */
        while (syscall(SYS_io_getevents, context, 1, 1, &done, NULL) < 0 && errno == EINTR) {}
        printf("  event %lld %llu\n", (long long)done.res, (unsigned long long)done.data);
    }
    syscall(SYS_io_destroy, context);
    errno = KEPT;
}

static struct { int fd; char *base, *entries; struct io_uring_params p; } ring;

static uint32_t *word(uint32_t offset) { return (uint32_t *)(void *)(ring.base + offset); }

static void ring_one(void) {
    enum kind kind;
    int fd = any_fd(&kind), what = (int)draw(4), flags = one_in(2) ? O_SYNC : O_DSYNC;
    if (kind == PROC || fd == ring.fd) return;
    memset(&ring, 0, sizeof ring);
    ring.fd = (int)syscall(SYS_io_uring_setup, 4, &ring.p);
    if (ring.fd < 0) { told(-1, "io_uring_setup"); return; }
    size_t length = fill(), size = ring.p.cq_off.cqes + ring.p.cq_entries * sizeof(struct io_uring_cqe);
    size_t submissions = ring.p.sq_off.array + ring.p.sq_entries * sizeof(uint32_t);
    if (submissions > size) size = submissions;
    size_t entries = ring.p.sq_entries * sizeof(struct io_uring_sqe);
    ring.base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
    ring.entries = mmap(NULL, entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQES);
    if (ring.base == MAP_FAILED || ring.entries == MAP_FAILED) abort();
    struct io_uring_sqe asked = {.fd = fd, .user_data = 9};
    switch (what) {
    case 0: asked.opcode = IORING_OP_FSYNC; asked.fsync_flags = (uint32_t)draw(3); break;
    case 1: asked.opcode = IORING_OP_SYNC_FILE_RANGE; asked.sync_range_flags = (uint32_t)draw(16); asked.len = PAGE; break;
    case 2:
        asked.opcode = IORING_OP_WRITE;
        asked.addr = (uint64_t)(uintptr_t)buffer;
        asked.len = (uint32_t)length;
        asked.rw_flags = one_in(2) ? RWF_DSYNC : RWF_SYNC;
        break;
    default:
        asked.opcode = IORING_OP_OPENAT;
        asked.fd = AT_FDCWD;
        asked.addr = (uint64_t)(uintptr_t)"f1";
        asked.open_flags = (uint32_t)(O_RDWR | O_CREAT | flags);
        asked.len = 0600;
    }
    memcpy(ring.entries, &asked, sizeof asked);
    *word(ring.p.sq_off.array) = 0;
    __atomic_store_n(word(ring.p.sq_off.tail), 1, __ATOMIC_RELEASE);
    errno = KEPT;
    told(syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0), "io_uring_enter %d %d", fd, what);
    const struct io_uring_cqe *done = (void *)(ring.base + ring.p.cq_off.cqes);
    int result = done[0].res;
    printf("  completed %d %llu\n", result, (unsigned long long)done[0].user_data);
    munmap(ring.base, size); munmap(ring.entries, entries); close(ring.fd);
    if (what == 3 && result >= 0) opened(result, FILE_);
    errno = KEPT;
}

/* ---- processes, threads, signals ---- */

static void wait_for(pid_t child, const char *what) {
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    errno = KEPT;
    told(status, "%s", what);
}

static void random_step(int may_fork);

static void fork_one(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 4; i++) random_step(0);
        fflush(stdout);
        _exit((int)draw(100));
    }
    wait_for(child, "fork");
}

static void vfork_one(void) {
    enum kind kind;
    int fd = any_fd(&kind);
    if (kind == PROC) return;
    fflush(stdout);
    pid_t child = vfork();
    if (child == 0) _exit(fsync(fd) == 0 ? 1 : 50 + errno);
    wait_for(child, "vfork");
}

static void exec_one(void) {
    char kinds[SLOTS * 16] = "";
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].kind && slots[i].kind != PROC) sprintf(kinds + strlen(kinds), "%d,", slots[i].fd);
    fflush(stdout);
    pid_t child = one_in(2) ? fork() : vfork();
    if (child == 0) {
        execl(program, program, "child", kinds, (char *)NULL);
        _exit(99);
    }
    wait_for(child, "exec");
}

static int execed(char *kinds) {
    for (char *at = kinds; *at; at++) {
        int fd = (int)strtol(at, &at, 10);
        errno = KEPT;
        int result = fsync(fd);
        printf("  exec fsync %d = %d errno %d\n", fd, result, errno);
    }
    return 3;
}

struct thread { pthread_t id; char name[8]; long results[3]; };

static void *in_thread(void *argument) {
    struct thread *own = argument;
    int fd = open(own->name, O_RDWR | O_CREAT | O_DSYNC, 0600);
    own->results[0] = fd >= 0;
    for (int i = 0; i < 5; i++) own->results[1] += pwrite(fd, own->name, 2, i * 10) + fdatasync(fd) + fsync(-1);
    own->results[2] = close(fd);
    return NULL;
}

static void threads_one(void) {
    struct thread threads[3] = {0};
    for (int i = 0; i < 3; i++) {
        sprintf(threads[i].name, "t%d", i);
        if (pthread_create(&threads[i].id, NULL, in_thread, &threads[i])) abort();
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i].id, NULL);
        printf("  thread %ld %ld %ld\n", threads[i].results[0], threads[i].results[1], threads[i].results[2]);
    }
    errno = KEPT;
}

static int of_handler = -1;

static void handler(int number_of_it) {
    (void)number_of_it;
    int before = errno;
    signalled++;
    if (of_handler >= 0 && fsync(of_handler)) signal_failed++;
    errno = before;
}

static void signals_one(void) {
    of_handler = open("signals", O_RDWR | O_CREAT, 0600);
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    errno = KEPT;
    setitimer(ITIMER_REAL, &often, NULL);
    long sum = 0;
    for (int i = 0; i < 10; i++) {
        sum += pwrite(of_handler, "12", 2, i) + fsync(of_handler) + fdatasync(of_handler) + (fsync(-1) && errno == EBADF);
        int fd = open("signals", O_RDWR | O_SYNC);
        sum += (fd >= 0) + close(fd);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    raise(SIGUSR1);
    close(of_handler);
    of_handler = -1;
    errno = KEPT;
    told(sum, "signals, %d failed", signal_failed);
}

static void random_step(int may_fork) {
    step++;
    unsigned long which = draw(100);
    if (which < 24) open_one();
    else if (which < 34) make_one();
    else if (which < 42) change_one();
    else if (which < 60) write_one();
    else if (which < 80) sync_one();
    else if (which < 88) msync_one();
    else if (which < 90) kernel_aio_one();
    else if (which < 92) ring_one();
    /* glibc's helper thread of aio is not in a child. */
    else if (!may_fork) sync_one();
    else if (which < 95) aio_one();
    else if (which < 96) fork_one();
    else if (which < 97) vfork_one();
    else if (which < 98) exec_one();
    else if (which < 99) threads_one();
    else if (one_in(3)) signals_one();
}

/* ---- a sequence ---- */

static const char *const names[] = {"f0", "f1", "f2", "f3", "d/g", "mapped", "t0", "t1", "t2", "signals", "gone",
                                    "d/f0", "d/f1", "d/f2", "d/f3", "d/d", "d/link", "d/dangling", "d/loop"};

static void content(void) {
    for (size_t i = 0; i < LENGTH(names); i++) {
        struct stat about;
        if (stat(names[i], &about)) continue;
        chmod(names[i], 0600);
        int fd = open(names[i], O_RDONLY);
        uint64_t sum = 14695981039346656037u;
        for (ssize_t count; (count = read(fd, buffer, sizeof buffer)) > 0;) sum = hash(sum, buffer, (size_t)count);
        printf("  %s %o %ld %016lx\n", names[i], about.st_mode, (long)about.st_size, (unsigned long)sum);
        close(fd);
        unlink(names[i]);
    }
    unlink("link"); unlink("dangling"); unlink("loop"); rmdir("d");
}

static void sequence(void) {
    state = number * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; i < 20; i++) draw(2);
    step = 0;
    memset(slots, 0, sizeof slots);
    if (mkdir("d", 0755) || symlink("f0", "link") || symlink("gone", "dangling") || symlink("loop", "loop")) abort();
    int fd = open("mapped", O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 2 * PAGE)) abort();
    /* Two pages of a file, a hole, a page of memory that is locked, a hole. */
    mapping = mmap(FAR_AWAY, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
    char *locked = FAR_AWAY + 3 * PAGE;
    if (mapping != FAR_AWAY || mmap(locked, PAGE, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != locked) abort();
    mlock(locked, PAGE);
    close(fd);
    for (unsigned long steps = 10 + draw(40); steps--;) random_step(1);
    for (int i = 0; i < SLOTS; i++) if (slots[i].kind) close(slots[i].fd);
    munmap(mapping, 2 * PAGE);
    munmap(locked, PAGE);
    content();
}

int main(int argc, char **argv) {
    if (argc == 3) return execed(argv[2]);
    if (argc != 4 || chdir(argv[3])) return 2;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    umask(022);
    program = "/proc/self/exe";
    unsigned long first = strtoul(argv[1], NULL, 10), count = strtoul(argv[2], NULL, 10);
    for (number = first; number < first + count; number++) sequence();
    printf("done, %d\n", signalled > 0 || count < 100);
    return 0;
}
