// append_log FILE N [MICROSECONDS]: appends the lines 1 to N, each with write and fsync, prints each number when it is
// durable, and sleeps in between.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void put(int fd, const char *text) {
    size_t length = strlen(text);
    if (write(fd, text, length) != (ssize_t)length) {
        perror("write");
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int log = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log < 0) {
        perror(argv[1]);
        return 1;
    }
    int count = atoi(argv[2]);
    unsigned rest = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
    for (int number = 1; number <= count; number++) {
        char line[32];
        snprintf(line, sizeof line, "%d\n", number);
        put(log, line);
        if (fsync(log) != 0) {
            perror("fsync");
            return 1;
        }
        put(STDOUT_FILENO, line);
        if (rest) usleep(rest);
    }
    return 0;
}
