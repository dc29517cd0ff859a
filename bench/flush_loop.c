/* Times each flush as `refit doctor --probe-disk` does: fsync of a file to which a line was appended.
 *
 * flush_loop FILE FLUSHES
 * Prints the ns of each fsync, in order; the writes are not timed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	char line[128];
	if (argc != 3)
		return 2;
	int count = atoi(argv[2]);
	int fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0600);
	long long *took = calloc((size_t)count, sizeof *took);
	if (count < 1 || fd < 0 || !took)
		return 3;
	memset(line, 'x', sizeof line);
	line[sizeof line - 1] = '\n';
	for (int i = 0; i < count; i++) {
		if (write(fd, line, sizeof line) != sizeof line)
			return 4;
		long long began = now_ns();
		if (fsync(fd) != 0)
			return 5;
		took[i] = now_ns() - began;
	}
	for (int i = 0; i < count; i++)
		printf("%lld\n", took[i]);
	return 0;
}
