// build: -pthread
// argv: T N FILE. T threads fsync FILE N times each, all at once.
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int fd, times;

static void *worker(void *unused)
{
    (void)unused;
    for (int i = 0; i < times; i++) {
        if (fsync(fd) != 0)
            return (void *)1;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    int count = argc == 4 ? atoi(argv[1]) : 0, failed = 0;
    if (count < 1 || count > 64)
        return 2;
    times = atoi(argv[2]);
    fd = open(argv[3], O_RDWR | O_CREAT, 0644);
    for (int i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, worker, NULL) != 0)
            return 2;
    }
    for (int i = 0; i < count; i++) {
        void *result;
        pthread_join(threads[i], &result);
        failed |= result != NULL;
    }
    return failed;
}
