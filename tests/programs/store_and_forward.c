// store_and_forward N MICROSECONDS: moves the items spool/1 to spool/N of the current directory to box/, as a mail
// server does: copy to a temporary name, fsync, rename, fsync of the directory, unlink.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void must(int is_good, const char *what) {
    if (!is_good) {
        perror(what);
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int count = atoi(argv[1]);
    int box = open("box", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(box >= 0, "box");
    for (int number = 1; number <= count; number++) {
        char from[64], draft[64], to[64], data[8192];
        snprintf(from, sizeof from, "spool/%d", number);
        snprintf(draft, sizeof draft, "box/tmp%d", number);
        snprintf(to, sizeof to, "box/%d", number);
        int in = open(from, O_RDONLY | O_CLOEXEC);
        must(in >= 0, from);
        ssize_t length = read(in, data, sizeof data);
        must(length > 0, from);
        int out = open(draft, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        must(out >= 0, draft);
        must(write(out, data, (size_t)length) == length, draft);
        must(fsync(out) == 0, draft);
        close(out);
        close(in);
        must(rename(draft, to) == 0, to);
        must(fsync(box) == 0, "box");
        must(unlink(from) == 0, from);
        usleep((unsigned)atoi(argv[2]));
    }
    return 0;
}
