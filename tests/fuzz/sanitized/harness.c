/* target.c and pattern.c, built with the address and undefined-behaviour sanitizers, on inputs from a pipe: four bytes of
 * length, then the input, which is an executable as well as a pattern, a line end and a path. Each is answered with a
 * byte: whether the pattern matched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pattern.h"
#include "target.h"

static void must(int is_good, const char *what)
{
	if (!is_good) {
		perror(what);
		exit(1);
	}
}

/* In an allocation of its own, which ends where it ends. */
static char *text(const char *from, size_t length)
{
	char *copy = malloc(length + 1);
	must(copy != NULL, "malloc");
	memcpy(copy, from, length);
	copy[length] = '\0';
	return copy;
}

static void look(const char *input, size_t length)
{
	int fd = memfd_create("harness", MFD_CLOEXEC);
	must(fd >= 0, "memfd_create");
	must(write(fd, input, length) == (ssize_t)length, "write");
	struct refit_target *seen = malloc(sizeof *seen);
	must(seen != NULL, "malloc");
	refit_target_look_fd(fd, seen);
	if (memchr(seen->interpreter, '\0', sizeof seen->interpreter) == NULL ||
	    memchr(seen->path, '\0', sizeof seen->path) == NULL) {
		fputs("a text without an end\n", stderr);
		abort();
	}
	free(seen);
	close(fd);
}

int main(void)
{
	unsigned length;
	while (fread(&length, sizeof length, 1, stdin) == 1) {
		char *input = malloc(length + 1);
		must(input != NULL, "malloc");
		must(fread(input, 1, length, stdin) == length, "read");
		input[length] = '\0';
		look(input, length);
		size_t first = strcspn(input, "\n");
		char *pattern = text(input, first);
		size_t start = first < strlen(input) ? first + 1 : first;
		char *path = text(input + start, strlen(input + start));
		char answer = (char)refit_pattern_matches(pattern, path);
		free(pattern);
		free(path);
		free(input);
		must(write(1, &answer, 1) == 1, "write");
	}
	return 0;
}
