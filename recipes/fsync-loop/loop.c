/* Writes numbered lines to a file, in one of six ways, and says what a line cost.
 * usage: loop MODE COUNT FILE
 *
 * The clock runs for the lines only: the cheapest ways are done long before a process has started and ended. */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct mode {
	const char *name;
	bool buffered; /* fprintf to stdio's buffer, or one write(2) for each line */
	bool flush;
	bool sync;
} modes[] = {
	{ "none", true, false, false },
	{ "fflush", true, true, false },
	{ "fsync", true, false, true },
	{ "both", true, true, true },
	{ "write", false, false, false },
	{ "write-fsync", false, false, true },
};

static const struct mode *find(const char *name)
{
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		if (strcmp(modes[i].name, name) == 0)
			return &modes[i];
	errx(2, "no mode %s", name);
}

static void print(FILE *file, const struct mode *mode, unsigned long number)
{
	if (mode->buffered) {
		if (fprintf(file, "line %07lu\n", number) < 0)
			err(1, "fprintf");
	} else {
		char line[32];
		int length = snprintf(line, sizeof line, "line %07lu\n", number);
		if (write(fileno(file), line, (size_t)length) != length)
			err(1, "write");
	}
	if (mode->flush && fflush(file) != 0)
		err(1, "fflush");
	if (mode->sync && fsync(fileno(file)) != 0)
		err(1, "fsync");
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		errx(2, "usage: loop MODE COUNT FILE");
	const struct mode *mode = find(argv[1]);
	unsigned long count = strtoul(argv[2], NULL, 10);
	FILE *file = fopen(argv[3], "wx");
	if (file == NULL)
		err(1, "%s", argv[3]);

	double began = now();
	for (unsigned long number = 1; number <= count; number++)
		print(file, mode, number);
	double took = now() - began;

	/* Only now does mode none write what is still in the buffer. */
	if (fclose(file) != 0)
		err(1, "%s", argv[3]);
	printf("%s: %lu lines, %.4f us a line\n", mode->name, count, took / (double)count * 1e6);
	return 0;
}
