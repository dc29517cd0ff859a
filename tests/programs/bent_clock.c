// build: -shared -fPIC
// A preload that bends the program's time: it goes 50 times as fast, and jumps.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static long calls;
    long result = syscall(SYS_clock_gettime, clock, time);
    time->tv_sec = time->tv_sec * 50 + 1000 * calls++;
    return result;
}
