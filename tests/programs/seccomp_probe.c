// Asks the kernel which flags of seccomp(2) it knows, as libseccomp does: without a filter, and with the answer EFAULT.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
    static const unsigned flags[] = {SECCOMP_FILTER_FLAG_TSYNC, SECCOMP_FILTER_FLAG_LOG, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                                     SECCOMP_FILTER_FLAG_NEW_LISTENER};
    for (int i = 0; i < 4; i++)
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags[i], NULL) != -1 || errno != EFAULT)
            return 1;
    return 0;
}
