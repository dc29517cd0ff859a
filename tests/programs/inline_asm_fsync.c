// fsyncs argv[1] by a system call instruction of its own, which no library can see.
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>

static long raw_fsync(int fd)
{
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"((long)SYS_fsync), "D"((long)fd) : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long number __asm__("x8") = SYS_fsync;
    register long argument __asm__("x0") = fd;
    __asm__ volatile("svc 0" : "+r"(argument) : "r"(number) : "memory");
    return argument;
#else
#error "no inline system call written for this architecture"
#endif
}

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0644) : -1;
    long result = raw_fsync(fd);
    if (result != 0)
        fprintf(stderr, "fsync: %ld\n", result);
    return result != 0;
}
