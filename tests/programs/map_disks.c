// map_disks PREFIX: until its standard input ends, maps every loop device whose file's path starts with PREFIX, reads
// each page, and unmaps it a moment later, as a program that looks at new disks may. Prints a line for each mapping, while
// it is there.
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/fs.h>

enum { MOMENT_MS = 100 };

static int starts_with(const char *backing_file, const char *prefix) {
    char path[4096] = "";
    FILE *file = fopen(backing_file, "re");
    if (file == NULL) return 0;
    int does = fgets(path, sizeof path, file) != NULL && strncmp(path, prefix, strlen(prefix)) == 0;
    fclose(file);
    return does;
}

static int input_ended(int timeout_ms) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, timeout_ms) > 0;
}

static int map_for_a_moment(const char *device) {
    int fd = open(device, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    unsigned long long size = 0;
    ioctl(fd, BLKGETSIZE64, &size);
    const volatile char *disk = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (disk == MAP_FAILED) return 0;
    // A page that the device no longer has is a SIGBUS: madvise(2) reads it and only fails.
    int failed = madvise((void *)disk, size, MADV_POPULATE_READ);
    if (!failed) puts(device);
    int ended = input_ended(MOMENT_MS);
    munmap((void *)disk, size);
    return ended;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (!input_ended(1)) {
        glob_t found;
        if (glob("/sys/block/loop*/loop/backing_file", 0, NULL, &found) != 0) continue;
        for (size_t i = 0; i < found.gl_pathc; i++) {
            char device[64];
            int number = 0;
            if (!starts_with(found.gl_pathv[i], argv[1])) continue;
            if (sscanf(found.gl_pathv[i], "/sys/block/loop%d/", &number) != 1) continue;
            snprintf(device, sizeof device, "/dev/loop%d", number);
            if (map_for_a_moment(device)) return 0;
        }
        globfree(&found);
    }
    return 0;
}
