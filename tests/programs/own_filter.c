// build: -laio -luring -ldl
// Beneath a seccomp filter of its own that kills for every system call that it does not make itself, calls each
// function that refit intercepts: one child for each case.
//
// own_filter FILE PROGRAM [HOW]: FILE is written, PROGRAM is exec'ed and must end by itself; HOW the filter is
// installed: prctl, seccomp (by number), or prctl-by-number. Prints "CASE RESULT ERRNO HOW-IT-ENDED" lines.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_filter_calls.h"

static const char *how;

// What the child returns to its parent without a system call.
static struct {
    long result;
    int error;
} *answer;

// ---- the filter -------------------------------------------------------------

struct allowed {
    int nr;
    int command; // the second argument must be this; -1: any
};

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

// ---- the cases, and the system calls that each may make ----------------------

// What arm64 has no call of, its C libraries do by another one.
#ifndef SYS_open
#define SYS_open SYS_openat
#define SYS_access SYS_faccessat
#define SYS_dup2 SYS_dup3
#define SYS_fork SYS_clone
#define SYS_vfork SYS_clone
#define SYS_arch_prctl SYS_prctl // arm64 sets the register of a thread without a call
#define NO_OPEN
#endif

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
    LINE("mkostemp", mkostemp, prepare_random, ANY_OPEN, ONE(getrandom))
    LINE("mkostemps", mkostemps, prepare_random, ANY_OPEN, ONE(getrandom))
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
#ifndef NO_OPEN
    LINE("syscall:open", nr_open, NULL, ONE(open))
#endif
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
    LINE("mkostemp64", mkostemp64, prepare_random, ANY_OPEN, ONE(getrandom))
    LINE("mkostemps64", mkostemps64, prepare_random, ANY_OPEN, ONE(getrandom))
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
