// FILE COUNT: syncs COUNT times by a system call instruction of its own, whose number no search finds.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static __attribute__((noinline)) long call(long wanted, long argument)
{
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(wanted), "D"(argument) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long number __asm__("x8") = wanted;
    register long result __asm__("x0") = argument;
    __asm__ volatile("svc 0" : "+r"(result) : "r"(number) : "memory");
#else
#error "no inline system call written for this architecture"
#endif
    return result;
}

int main(int argc, char **argv)
{
    int fd = argc == 3 ? open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;
    for (int i = argc == 3 ? atoi(argv[2]) : 0; i > 0; i--)
        if (write(fd, "x\n", 2) != 2 || call(SYS_fsync - 3 + argc, fd) != 0)
            return 1;
    return fd < 0;
}
