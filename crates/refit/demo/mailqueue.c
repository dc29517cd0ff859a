/* A mail queue in small: each message is written, synced, renamed into its
 * place, and the directory is synced, as a mail server does before it says 250.
 * Between messages, many small allocations live and die.
 *
 *   mailqueue DIR MESSAGES [acknowledge]
 *
 * With the third word it writes each message's name to the standard output once
 * it is safe.
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT 256
#define PER_MESSAGE 400

static char *kept[KEPT];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Headers and tokens of a message: short-lived, of every small size. */
static size_t parse(unsigned message)
{
	size_t sum = 0;
	for (unsigned i = 0; i < PER_MESSAGE; i++) {
		unsigned at = (message * 31 + i * 17) % KEPT;
		size_t size = 16 + (message * 7 + i * 13) % 500;
		free(kept[at]);
		kept[at] = malloc(size);
		if (!kept[at]) {
			die("malloc");
		}
		memset(kept[at], (int)i, size);
		sum += (unsigned char)kept[at][size / 2];
	}
	return sum;
}

static void deliver(int directory, unsigned message, size_t sum, int acknowledges)
{
	char body[4096];
	char name[32];
	memset(body, 'x', sizeof body);
	int n = snprintf(body, sizeof body, "Message-Id: <%u.%zu>\n", message, sum);
	body[n] = '\n';
	int length = snprintf(name, sizeof name, "message-%u\n", message);
	name[length - 1] = 0;
	int fd = openat(directory, "incoming", O_CREAT | O_WRONLY | O_TRUNC, 0600);
	if (fd < 0) {
		die("incoming");
	}
	if (write(fd, body, sizeof body) != (ssize_t)sizeof body || fsync(fd)) {
		die("write");
	}
	close(fd);
	if (renameat(directory, "incoming", directory, name) || fsync(directory)) {
		die("rename");
	}
	name[length - 1] = '\n';
	if (acknowledges && write(1, name, (size_t)length) != length) {
		die("standard output");
	}
}

int main(int argc, char **argv)
{
	if (argc != 3 && argc != 4) {
		fputs("usage: mailqueue DIR MESSAGES [acknowledge]\n", stderr);
		return 2;
	}
	int directory = open(argv[1], O_RDONLY | O_DIRECTORY);
	if (directory < 0) {
		die(argv[1]);
	}
	unsigned messages = (unsigned)atoi(argv[2]);
	for (unsigned i = 0; i < messages; i++) {
		deliver(directory, i, parse(i), argc == 4);
	}
	return 0;
}
