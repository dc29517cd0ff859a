// build: gcc -O2 -g -pthread
// Spends processor time in functions, and prints how much in each: cpu_spins SECONDS. 3 of 4 parts in mostly(), in the first
// thread; 1 of 4 in rarely(), in another. Both are called by the same function, which the compiler puts into its callers.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double used(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static __attribute__((noinline)) uint64_t mostly(uint64_t steps)
{
    uint64_t x = 1;
    for (uint64_t i = 0; i < steps; i++)
        x = x * 6364136223846793005u + i; // line of mostly
    return x;
}

static __attribute__((noinline)) uint64_t rarely(uint64_t steps)
{
    uint64_t x = 1;
    for (uint64_t i = 0; i < steps; i++)
        x ^= (x << 13) + i; // line of rarely
    return x;
}

static volatile uint64_t kept;

static inline __attribute__((always_inline)) double spend(uint64_t (*function)(uint64_t), double seconds)
{
    double began = used();
    while (used() - began < seconds)
        kept += function(1000000); // line of spend
    return used() - began;
}

static double seconds, of_rarely;

static void *thread(void *unused)
{
    of_rarely = spend(rarely, seconds / 4);
    return unused;
}

int main(int argc, char **argv)
{
    seconds = argc > 1 ? atof(argv[1]) : 1;
    pthread_t other;
    if (pthread_create(&other, NULL, thread, NULL) != 0)
        return 1;
    double of_mostly = spend(mostly, seconds * 3 / 4);
    pthread_join(other, NULL);
    printf("%f %f\n", of_mostly, of_rarely);
    return 0;
}
