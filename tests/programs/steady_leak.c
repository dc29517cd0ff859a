// Leaks at a known rate: prints "ready", then touches the given number of bytes
// each 100 ms, by the clock and not by sleeping alone, until its input ends.
#define _DEFAULT_SOURCE
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int count, char **words)
{
    if (count != 2)
        return 2;
    size_t step = strtoull(words[1], NULL, 10), most = 64u << 20, used = 0;
    char *memory = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 2;
    // Page by page, whatever the system does with huge ones.
    madvise(memory, most, MADV_NOHUGEPAGE);
    puts("ready");
    fflush(stdout);
    struct pollfd input = {.fd = 0, .events = POLLIN};
    double began = now();
    while (poll(&input, 1, 20) == 0) {
        size_t due = (size_t)((now() - began) * 10.0) * step;
        if (due > most)
            due = most;
        if (due > used)
            memset(memory + used, 1, due - used);
        used = due > used ? due : used;
    }
    return 0;
}
