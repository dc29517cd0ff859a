// Execs argv[2] beneath a seccomp filter: `ioctl` refuses every ioctl with EPERM; `exchange` answers renameat2 with flags by
// EINVAL, as a file system does that does not know them; `perf` refuses perf_event_open with EACCES.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)

int main(int argc, char **argv)
{
    struct sock_filter ioctls[] = {
        NUMBER,
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
        ANSWER(SECCOMP_RET_ERRNO | EPERM),
        ANSWER(SECCOMP_RET_ALLOW),
    };
    struct sock_filter exchanges[] = {
        NUMBER,
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        ANSWER(SECCOMP_RET_ERRNO | EINVAL),
        ANSWER(SECCOMP_RET_ALLOW),
    };
    struct sock_filter events[] = {
        NUMBER,
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        ANSWER(SECCOMP_RET_ERRNO | EACCES),
        ANSWER(SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof ioctls / sizeof *ioctls, ioctls};
    if (argc < 3)
        return 2;
    if (strcmp(argv[1], "exchange") == 0)
        filter = (struct sock_fprog){sizeof exchanges / sizeof *exchanges, exchanges};
    if (strcmp(argv[1], "perf") == 0)
        filter = (struct sock_fprog){sizeof events / sizeof *events, events};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        perror("prctl");
        return 1;
    }
    execv(argv[2], argv + 2);
    return errno;
}
