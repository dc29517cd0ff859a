// build: -laio -luring -ldl
// Beneath a seccomp filter of its own that kills for every system call that it does not make itself, calls each
// function that refit intercepts: one child for each case.
//
// own_filter FILE PROGRAM [HOW]: FILE is written, PROGRAM is exec'ed and must end by itself; HOW the filter is
// installed: prctl, seccomp (by number), or prctl-by-number. Prints "CASE RESULT ERRNO HOW-IT-ENDED" lines.
#define _GNU_SOURCE
#include <aio.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <liburing.h>
#endif

extern char **environ;

static const char *file, *program, *how;
static int fd, dirfd;
static char *page;
static char template[4096];
static char *program_argv[] = {"program", NULL};

// What the child returns to its parent without a system call.
static struct {
    long result;
    int error;
} *answer;

// ---- what a case is allowed ------------------------------------------------

struct allowed {
    int nr;
    int command; // the second argument must be this; -1: any
};

#define ONE(name) {SYS_##name, -1}
#define ANY_OPEN ONE(open), ONE(openat)
// For starting a thread, as the C libraries do for POSIX AIO.
#define ANY_THREAD                                                                                                   \
    ONE(mmap), ONE(mprotect), ONE(munmap), ONE(brk), ONE(clone), ONE(clone3), ONE(rt_sigprocmask), ONE(futex),        \
        ONE(madvise), ONE(set_robust_list), ONE(rseq), ONE(exit), ONE(gettid), ONE(sched_getparam),                   \
        ONE(sched_getscheduler), ONE(sched_setscheduler), ONE(rt_sigaction), ONE(membarrier), ONE(lseek),              \
        {SYS_fcntl, F_GETFD}, {SYS_fcntl, F_GETFL}
#define ANY_SPAWN                                                                                                    \
    ONE(mmap), ONE(munmap), ONE(clone), ONE(clone3), ONE(vfork), ONE(rt_sigprocmask), ONE(rt_sigaction), ONE(pipe2),  \
        ONE(read), ONE(write), ONE(close), ONE(execve), ONE(wait4), ONE(sched_getscheduler), {SYS_fcntl, F_SETFD}
// A shell, which inherits the filter.
#define ANY_SHELL                                                                                                    \
    ANY_SPAWN, ONE(brk), ONE(arch_prctl), ONE(set_tid_address), ONE(set_robust_list), ONE(rseq), ONE(prlimit64),      \
        ONE(getrandom), ONE(mprotect), ONE(openat), ONE(newfstatat), ONE(fstat), ONE(pread64), ONE(access),           \
        ONE(faccessat2), ONE(getuid), ONE(geteuid), ONE(getgid), ONE(getegid), ONE(getpid), ONE(getppid), ONE(getcwd),\
        ONE(rt_sigreturn), ONE(futex), ONE(lseek), {SYS_fcntl, F_SETFD}, {SYS_fcntl, F_DUPFD}, ONE(dup2), ONE(dup3), ONE(uname)
#define ANY_FORK                                                                                                     \
    ONE(fork), ONE(clone), ONE(wait4), ONE(set_robust_list), ONE(gettid), ONE(set_tid_address), ONE(rt_sigprocmask)
#define ANY_SETUP                                                                                                    \
    ONE(io_uring_setup), ONE(io_uring_register), ONE(mmap), ONE(munmap), ONE(madvise), ONE(close)

enum { MOST = 56 };

struct test {
    const char *name;
    struct allowed allowed[MOST]; // {0, 0} ends: read is number 0, and is given as ONE(read)
    void (*prepare)(void);
    long (*call)(void);
};

static void install(const struct allowed *allowed)
{
    struct sock_filter code[8 + 4 * MOST];
    unsigned short n = 0;
    const unsigned nr = offsetof(struct seccomp_data, nr);
    const unsigned second = offsetof(struct seccomp_data, args[1]);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, nr);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    for (int i = 0; i < MOST && (allowed[i].nr || allowed[i].command); i++) {
        int any = allowed[i].command == -1;
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i].nr, 0, any ? 1 : 4);
        if (!any) {
            code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, second);
            code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i].command, 0, 1);
        }
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        if (!any)
            code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, nr);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog filter = {n, code};
    long result = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (result == 0 && strcmp(how, "seccomp") == 0)
        result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
    else if (result == 0 && strcmp(how, "prctl-by-number") == 0)
        result = syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
    else if (result == 0)
        result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
    if (result != 0)
        _exit(99);
}

// ---- the cases ---------------------------------------------------------------

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
CASE(nr_open, opened(syscall(SYS_open, file, FLAGS, 0600)))
CASE(nr_openat, opened(syscall(SYS_openat, dirfd, "own", FLAGS, 0600)))
static struct open_how open_how = {.flags = O_RDWR | O_SYNC | O_DIRECT};
CASE(nr_openat2, opened(syscall(SYS_openat2, AT_FDCWD, file, &open_how, sizeof open_how)))
CASE(mkostemp, opened(mkostemp(template, O_SYNC | O_DIRECT)))
CASE(mkostemps, opened(mkostemps(template, 0, O_SYNC | O_DIRECT)))
CASE(fcntl, fcntl(fd, F_SETFL, O_DIRECT))

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

#define LINE(name, id, prepare, ...)                                                                                 \
    {name, {__VA_ARGS__}, prepare, call_##id},

static const struct test tests[] = {
    LINE("fsync", fsync, NULL, ONE(fsync))
    LINE("fdatasync", fdatasync, NULL, ONE(fdatasync))
    LINE("sync", sync, NULL, ONE(sync))
    LINE("syncfs", syncfs, NULL, ONE(syncfs))
    LINE("msync", msync, NULL, ONE(msync))
    LINE("open", open, NULL, ANY_OPEN)
    LINE("openat", openat, NULL, ONE(openat))
    LINE("mkostemp", mkostemp, NULL, ANY_OPEN, ONE(getrandom))
    LINE("mkostemps", mkostemps, NULL, ANY_OPEN, ONE(getrandom))
    LINE("fcntl", fcntl, NULL, {SYS_fcntl, F_SETFL})
    LINE("aio_fsync", aio_fsync, NULL, ANY_THREAD, ONE(fsync), ONE(fdatasync))
    LINE("lio_listio", lio_listio, NULL, ANY_THREAD)
    LINE("chroot", chroot, NULL, ONE(chroot))
    LINE("syscall:chroot", nr_chroot, NULL, ONE(chroot))
    LINE("prctl", prctl, NULL, ONE(prctl))
    LINE("mmap", mmap, NULL, ONE(mmap))
    LINE("munmap", munmap, NULL, ONE(munmap))
    LINE("dlopen", dlopen, NULL, ONE(brk), ONE(mmap))
    LINE("execve", execve, prepare_exec, ONE(execve))
    LINE("execve:missing", execve_missing, prepare_exec, ONE(execve))
    LINE("execv", execv, prepare_exec, ONE(execve))
    LINE("execvp", execvp, prepare_exec, ONE(execve))
    LINE("execvpe", execvpe, prepare_exec, ONE(execve))
    LINE("execl", execl, prepare_exec, ONE(execve))
    LINE("execlp", execlp, prepare_exec, ONE(execve))
    LINE("execle", execle, prepare_exec, ONE(execve))
    LINE("fexecve", fexecve, prepare_exec, ONE(execveat))
    LINE("setuid", setuid, NULL, ONE(setuid), ONE(rt_sigprocmask))
    LINE("seteuid", seteuid, NULL, ONE(setresuid), ONE(rt_sigprocmask))
    LINE("setreuid", setreuid, NULL, ONE(setreuid), ONE(rt_sigprocmask))
    LINE("setresuid", setresuid, NULL, ONE(setresuid), ONE(rt_sigprocmask))
    LINE("capset", capset, NULL, ONE(capset))
    LINE("system", system, NULL, ANY_SHELL)
    LINE("popen", popen, NULL, ANY_SHELL)
    LINE("syscall:setuid", nr_setuid, NULL, ONE(setuid))
    LINE("syscall:execve", nr_execve, prepare_exec, ONE(execve))
    LINE("posix_spawn", posix_spawn, prepare_exec, ANY_SPAWN)
    LINE("posix_spawnp", posix_spawnp, prepare_exec, ANY_SPAWN)
    LINE("fork", fork, NULL, ANY_FORK, ONE(fsync))
    LINE("fork:exec", fork_exec, prepare_exec, ANY_FORK, ONE(execve))
    LINE("vfork", vfork, prepare_exec, ANY_FORK, ONE(vfork), ONE(execve))
    LINE("syscall:fsync", nr_fsync, NULL, ONE(fsync))
    LINE("syscall:fdatasync", nr_fdatasync, NULL, ONE(fdatasync))
    LINE("syscall:sync", nr_sync, NULL, ONE(sync))
    LINE("syscall:syncfs", nr_syncfs, NULL, ONE(syncfs))
    LINE("syscall:sync_file_range", sync_file_range, NULL, ONE(sync_file_range))
    LINE("syscall:msync", nr_msync, NULL, ONE(msync))
    LINE("syscall:open", nr_open, NULL, ONE(open))
    LINE("syscall:openat", nr_openat, NULL, ONE(openat))
    LINE("syscall:openat2", nr_openat2, NULL, ONE(openat2))
    LINE("syscall:pwritev2", nr_pwritev2, NULL, ONE(pwritev2))
    LINE("syscall:io_submit", nr_io_submit, prepare_context, ONE(io_submit))
    LINE("syscall:io_uring_setup", nr_io_uring_setup, NULL, ONE(io_uring_setup))
    LINE("syscall:io_uring_enter", nr_io_uring_enter, NULL, ONE(io_uring_enter))
    LINE("syscall:munmap", nr_munmap, NULL, ONE(munmap))
    LINE("syscall:seccomp", nr_seccomp, NULL, ONE(seccomp))
    LINE("syscall:prctl", nr_prctl, NULL, ONE(prctl))
#ifdef __GLIBC__
    LINE("sync_file_range", libc_sync_file_range, NULL, ONE(sync_file_range))
    LINE("mmap64", mmap64, NULL, ONE(mmap))
    LINE("open64", open64, NULL, ANY_OPEN)
    LINE("openat64", openat64, NULL, ONE(openat))
    LINE("__open_2", open_2, NULL, ANY_OPEN)
    LINE("__open64_2", open64_2, NULL, ANY_OPEN)
    LINE("__openat_2", openat_2, NULL, ONE(openat))
    LINE("__openat64_2", openat64_2, NULL, ONE(openat))
    LINE("mkostemp64", mkostemp64, NULL, ANY_OPEN, ONE(getrandom))
    LINE("mkostemps64", mkostemps64, NULL, ANY_OPEN, ONE(getrandom))
    LINE("fcntl64", fcntl64, NULL, {SYS_fcntl, F_SETFL})
    LINE("pwritev2", pwritev2, NULL, ONE(pwritev2))
    LINE("pwritev64v2", pwritev64v2, NULL, ONE(pwritev2))
    LINE("aio_fsync64", aio_fsync64, NULL, ANY_THREAD, ONE(fsync), ONE(fdatasync))
    LINE("lio_listio64", lio_listio64, NULL, ANY_THREAD)
    LINE("execveat", execveat, NULL, ONE(execveat))
    LINE("io_submit", io_submit, prepare_context, ONE(io_submit))
    LINE("io_uring_queue_init", io_uring_queue_init, NULL, ANY_SETUP)
    LINE("io_uring_queue_init_params", io_uring_queue_init_params, NULL, ANY_SETUP)
    LINE("io_uring_submit", io_uring_submit, prepare_ring, ONE(io_uring_enter))
    LINE("io_uring_submit_and_wait", io_uring_submit_and_wait, prepare_ring, ONE(io_uring_enter))
    LINE("io_uring_submit_and_wait_timeout", io_uring_submit_and_wait_timeout, prepare_ring, ONE(io_uring_enter))
    LINE("io_uring_submit_and_get_events", io_uring_submit_and_get_events, prepare_ring, ONE(io_uring_enter))
#endif
};

static void try(const struct test *test)
{
    answer->result = -2;
    answer->error = 0;
    strcpy(template, file);
    strcpy(template + strlen(template), "XXXXXX");
    pid_t pid = fork();
    if (pid == 0) {
        fd = open(file, O_RDWR); // its flags are this child's
        if (test->prepare)
            test->prepare();
        install(test->allowed);
        errno = 0;
        long result = test->call();
        answer->error = errno;
        answer->result = result;
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        printf("%s killed by signal %d\n", test->name, WTERMSIG(status));
    else
        printf("%s %ld errno=%d exit=%d\n", test->name, answer->result, answer->error, WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    file = argv[1];
    program = argv[2];
    how = argc > 3 ? argv[3] : "prctl";
    fd = open(file, O_RDWR | O_CREAT, 0600);
    char *dir = strdup(file);
    *strrchr(dir, '/') = '\0';
    dirfd = open(dir, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || dirfd < 0 || ftruncate(fd, 8192) != 0)
        return 2;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    answer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        try(&tests[i]);
    return 0;
}
