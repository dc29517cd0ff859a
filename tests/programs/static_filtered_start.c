// build: -static
// Execs argv[1] beneath a seccomp filter that kills for every system call but those with which ld.so and the C
// library start a program that writes a line and calls fsync. No preload sees it install the filter.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static const int allowed[] = {
    SYS_execve, SYS_brk, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_faccessat, SYS_openat, SYS_read, SYS_readv,
    SYS_pread64, SYS_write, SYS_fstat, SYS_newfstatat, SYS_close, SYS_fcntl, SYS_set_tid_address,
    SYS_set_robust_list, SYS_rseq, SYS_prlimit64, SYS_getrandom, SYS_futex, SYS_fsync, SYS_exit_group,
#if defined(__x86_64__)
    SYS_access, SYS_open, SYS_arch_prctl,
#endif
};
enum { COUNT = sizeof allowed / sizeof *allowed };

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    struct sock_filter code[2 * COUNT + 2];
    unsigned short n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < COUNT; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog filter = {n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        perror("prctl");
        return 1;
    }
    execve(argv[1], argv + 1, environ);
    return errno;
}
