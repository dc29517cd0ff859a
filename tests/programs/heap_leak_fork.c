// build: -pthread
// What is live of a parent, its child and a thread, 32 MiB each, in blocks of 4000 bytes; and what each of the two
// processes freed that was allocated before the fork.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS ((32UL << 20) / 4000)

static void *kept[BLOCKS];
static void *freed[BLOCKS];

static void fill(void **blocks)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(4000);
        if (blocks[i] == NULL)
            exit(1);
        *(volatile char *)blocks[i] = 1;
    }
}

static __attribute__((noinline)) void of_the_parent(void)
{
    fill(kept);
    *(void *volatile *)kept = kept[0];
}

static __attribute__((noinline)) void freed_by_the_parent(void)
{
    fill(freed);
    *(void *volatile *)freed = freed[0];
}

static __attribute__((noinline)) void of_the_child(void)
{
    fill(freed);
    *(void *volatile *)freed = freed[0];
}

static void *of_a_thread(void *nothing)
{
    static void *mine[BLOCKS];
    fill(mine);
    *(void *volatile *)mine = mine[0];
    return nothing;
}

static void give_back(void **blocks)
{
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

int main(void)
{
    of_the_parent();
    freed_by_the_parent();
    pid_t child = fork();
    if (child == 0) {
        give_back(freed);
        give_back(kept);
        of_the_child();
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        return 1;
    give_back(freed);
    pthread_t thread;
    if (pthread_create(&thread, NULL, of_a_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    return 0;
}
