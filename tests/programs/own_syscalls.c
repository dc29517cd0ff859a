// build: -O0
// FILE COUNT WAY: syncs COUNT times, each as `way` says: `named` by the C library, `own` by a system call instruction of its
// own, `half` by turns.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
static long own_fsync(int fd)
{
    long result = SYS_fsync;
    __asm__ volatile("syscall" : "+a"(result) : "D"((long)fd) : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static long own_fsync(int fd)
{
    register long number __asm__("x8") = SYS_fsync;
    register long result __asm__("x0") = fd;
    __asm__ volatile("svc 0" : "+r"(result) : "r"(number) : "memory");
    return result;
}
#else
#error "no inline system call written for this architecture"
#endif

int main(int argc, char **argv)
{
    int fd = argc == 4 ? open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;
    int count = argc == 4 ? atoi(argv[2]) : 0;
    int is_half = argc == 4 && strcmp(argv[3], "half") == 0;
    int is_named = argc == 4 && strcmp(argv[3], "named") == 0;
    if (fd < 0)
        return 2;
    for (int i = 0; i < count; i++) {
        if (write(fd, "x\n", 2) != 2)
            return 1;
        long result = is_named || (is_half && i % 2) ? fsync(fd) : own_fsync(fd);
        if (result != 0)
            return 1;
    }
    return 0;
}
