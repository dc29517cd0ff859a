// The calls of own_filter: call_NAME makes one, prepare_NAME what it needs before the filter is there.
#include <aio.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <liburing.h>
#endif

extern char **environ;

// Set by own_filter.c.
static const char *file, *program;
static int fd, dirfd;
static char *page;
static char template[4096];
static char *program_argv[] = {"program", NULL};

#define CASE(id, expression)                                                                                         \
    static long call_##id(void)                                                                                      \
    {                                                                                                                \
        return expression;                                                                                           \
    }

CASE(fsync, fsync(fd))
CASE(fdatasync, fdatasync(fd))
CASE(sync, (sync(), 0))
CASE(syncfs, syncfs(fd))
CASE(sync_file_range, syscall(SYS_sync_file_range, fd, 0L, 0L, 7))
CASE(msync, msync(page, 4096, MS_SYNC))
CASE(nr_fsync, syscall(SYS_fsync, fd))
CASE(nr_fdatasync, syscall(SYS_fdatasync, fd))
CASE(nr_sync, syscall(SYS_sync))
CASE(nr_syncfs, syscall(SYS_syncfs, fd))
CASE(nr_msync, syscall(SYS_msync, page, 4096L, MS_SYNC))

#define FLAGS (O_RDWR | O_CREAT | O_SYNC | O_DIRECT)
// Which number the descriptor has may differ: where refit's guardian opens the file, another one is free.
static long opened(long result)
{
    return result >= 0 ? 0 : result;
}
CASE(open, opened(open(file, FLAGS, 0600)))
CASE(openat, opened(openat(dirfd, "own", FLAGS, 0600)))
#ifdef SYS_open
CASE(nr_open, opened(syscall(SYS_open, file, FLAGS, 0600)))
#endif
CASE(nr_openat, opened(syscall(SYS_openat, dirfd, "own", FLAGS, 0600)))
static struct open_how open_how = {.flags = O_RDWR | O_SYNC | O_DIRECT};
CASE(nr_openat2, opened(syscall(SYS_openat2, AT_FDCWD, file, &open_how, sizeof open_how)))
CASE(mkostemp, opened(mkostemp(template, O_SYNC | O_DIRECT)))
CASE(mkostemps, opened(mkostemps(template, 0, O_SYNC | O_DIRECT)))
CASE(fcntl, fcntl(fd, F_SETFL, O_DIRECT))
/* The first random number of glibc 2.41 takes calls of its own: its state for the vDSO's getrandom. */
static void prepare_random(void)
{
    char random;
    if (getrandom(&random, 1, 0) != 1)
        _exit(98);
}

static struct iovec part = {"12345678", 8};
CASE(nr_pwritev2, syscall(SYS_pwritev2, fd, &part, 1L, 0L, 0L, 2 /* RWF_DSYNC */))

static long call_aio_fsync(void)
{
    static struct aiocb block;
    const struct aiocb *list[] = {&block};
    block.aio_fildes = fd;
    block.aio_sigevent.sigev_notify = SIGEV_NONE;
    if (aio_fsync(O_SYNC, &block) != 0)
        return -1;
    while (aio_error(&block) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    errno = 0; // aio_suspend may have found that it is done
    return aio_return(&block);
}

static struct aiocb no_operation = {.aio_lio_opcode = LIO_NOP};
static struct aiocb *no_operations[] = {&no_operation};
CASE(lio_listio, lio_listio(LIO_WAIT, no_operations, 1, NULL))

static aio_context_t context;
static struct iocb sync_block;
static struct iocb *sync_blocks[] = {&sync_block};
static void prepare_context(void)
{
    if (syscall(SYS_io_setup, 4, &context) != 0)
        _exit(98);
    sync_block.aio_lio_opcode = IOCB_CMD_FSYNC;
    sync_block.aio_fildes = (unsigned)fd;
}
CASE(nr_io_submit, syscall(SYS_io_submit, context, 1L, sync_blocks))

// Its parameters: ten words and two tables (io_uring_setup(2)).
static unsigned setup_parameters[30];
CASE(nr_io_uring_setup, opened(syscall(SYS_io_uring_setup, 4, setup_parameters)))
CASE(nr_io_uring_enter, syscall(SYS_io_uring_enter, -1, 1, 0, 0, NULL, 0))
static void *map_nothing(void *(*map)(void *, size_t, int, int, int, off_t))
{
    return map(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0);
}
CASE(mmap, map_nothing(mmap) == MAP_FAILED ? -1 : 0)
CASE(munmap, munmap(NULL, 0))
CASE(nr_munmap, syscall(SYS_munmap, NULL, 0))
CASE(nr_seccomp, syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &(unsigned){SECCOMP_RET_ALLOW}))
CASE(chroot, chroot("/nowhere/at/all"))
CASE(nr_chroot, syscall(SYS_chroot, "/nowhere/at/all"))
CASE(prctl, prctl(PR_GET_DUMPABLE, 0, 0, 0, 0))
CASE(nr_prctl, syscall(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0))
CASE(dlopen, dlopen(NULL, RTLD_NOW) ? 0 : 1)

static int program_fd;
static char *program_dir;
static const char *program_name;
static void prepare_exec(void)
{
    program_fd = open(program, O_RDONLY | O_CLOEXEC);
    program_dir = strdup(program);
    char *slash = strrchr(program_dir, '/');
    *slash = '\0';
    program_name = slash + 1;
    setenv("PATH", program_dir, 1);
}
CASE(execve, execve(program, program_argv, environ))
CASE(execve_missing, execve("/nowhere/at/all", program_argv, environ))
CASE(nr_execve, syscall(SYS_execve, program, program_argv, environ))
CASE(execv, execv(program, program_argv))
CASE(execvp, execvp(program_name, program_argv))
CASE(execvpe, execvpe(program_name, program_argv, environ))
CASE(execl, execl(program, "program", (char *)NULL))
CASE(execlp, execlp(program_name, "program", (char *)NULL))
CASE(execle, execle(program, "program", (char *)NULL, environ))
CASE(fexecve, fexecve(program_fd, program_argv, environ))

// Of another user, as only that changes what refit does; EPERM where nobody may become one.
static uid_t other = 65534;
static struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
static struct __user_cap_data_struct capabilities[2];

static long waited(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
}
static long call_posix_spawn(void)
{
    pid_t pid;
    int result = posix_spawn(&pid, program, NULL, NULL, program_argv, environ);
    return result ? result : waited(pid);
}
static long call_posix_spawnp(void)
{
    pid_t pid;
    int result = posix_spawnp(&pid, program_name, NULL, NULL, program_argv, environ);
    return result ? result : waited(pid);
}
static long call_fork(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(fsync(fd) != 0);
    return waited(pid);
}
static long call_fork_exec(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        execve(program, program_argv, environ);
        _exit(1);
    }
    return waited(pid);
}
static long call_vfork(void)
{
    pid_t pid = vfork();
    if (pid == 0) {
        execve(program, program_argv, environ);
        _exit(1);
    }
    return waited(pid);
}

int capset(cap_user_header_t, cap_user_data_t);
CASE(setuid, setuid(other))
CASE(seteuid, seteuid(other))
CASE(setreuid, setreuid(-1, other))
CASE(setresuid, setresuid(-1, other, -1))
CASE(nr_setuid, syscall(SYS_setuid, other))
CASE(capset, capset(&header, capabilities))
CASE(system, system("exit 3"))
static long call_popen(void)
{
    FILE *stream = popen("exit 3", "r");
    return stream ? pclose(stream) : -1;
}

#ifdef __GLIBC__
int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);
#define FEWER (FLAGS & ~O_CREAT)
CASE(libc_sync_file_range, sync_file_range(fd, 0, 0, 7))
CASE(mmap64, map_nothing(mmap64) == MAP_FAILED ? -1 : 0)
CASE(open64, opened(open64(file, FLAGS, 0600)))
CASE(openat64, opened(openat64(dirfd, "own", FLAGS, 0600)))
CASE(open_2, opened(__open_2(file, FEWER)))
CASE(open64_2, opened(__open64_2(file, FEWER)))
CASE(openat_2, opened(__openat_2(dirfd, "own", FEWER)))
CASE(openat64_2, opened(__openat64_2(dirfd, "own", FEWER)))
CASE(mkostemp64, opened(mkostemp64(template, O_SYNC | O_DIRECT)))
CASE(mkostemps64, opened(mkostemps64(template, 0, O_SYNC | O_DIRECT)))
CASE(fcntl64, fcntl64(fd, F_SETFL, O_DIRECT))
CASE(pwritev2, pwritev2(fd, &part, 1, 0, 2))
CASE(pwritev64v2, pwritev64v2(fd, &part, 1, 0, 2))
static long call_aio_fsync64(void)
{
    static struct aiocb64 block;
    const struct aiocb64 *list[] = {&block};
    block.aio_fildes = fd;
    block.aio_sigevent.sigev_notify = SIGEV_NONE;
    if (aio_fsync64(O_SYNC, &block) != 0)
        return -1;
    while (aio_error64(&block) == EINPROGRESS)
        aio_suspend64(list, 1, NULL);
    errno = 0; // aio_suspend may have found that it is done
    return aio_return64(&block);
}
static struct aiocb64 no_operation64 = {.aio_lio_opcode = LIO_NOP};
static struct aiocb64 *no_operations64[] = {&no_operation64};
CASE(lio_listio64, lio_listio64(LIO_WAIT, no_operations64, 1, NULL))
CASE(execveat, execveat(AT_FDCWD, program, program_argv, environ, 0))

int io_submit(aio_context_t, long, struct iocb **);
CASE(io_submit, io_submit(context, 1, sync_blocks))

static struct io_uring ring;
static struct io_uring_params parameters;
static long set_up(long result)
{
    return result >= 0 ? 0 : result;
}
static void prepare_ring(void)
{
    if (io_uring_queue_init(4, &ring, 0) == 0)
        io_uring_prep_fsync(io_uring_get_sqe(&ring), fd, 0);
    else
        memset(&ring, 0, sizeof ring);
}
static long submitted(int (*submit)(struct io_uring *))
{
    return ring.sq.sqes ? submit(&ring) : -1;
}
static int and_wait(struct io_uring *r)
{
    return io_uring_submit_and_wait(r, 1);
}
static int and_wait_timeout(struct io_uring *r)
{
    struct io_uring_cqe *done;
    struct __kernel_timespec time = {10, 0};
    return io_uring_submit_and_wait_timeout(r, &done, 1, &time, NULL);
}
CASE(io_uring_queue_init, set_up(io_uring_queue_init(4, &ring, 0)))
CASE(io_uring_queue_init_params, set_up(io_uring_queue_init_params(4, &ring, &parameters)))
CASE(io_uring_submit, submitted(io_uring_submit))
CASE(io_uring_submit_and_wait, submitted(and_wait))
CASE(io_uring_submit_and_wait_timeout, submitted(and_wait_timeout))
CASE(io_uring_submit_and_get_events, submitted(io_uring_submit_and_get_events))
#endif
