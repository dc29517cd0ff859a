/* So many clients that ask the lease daemon for an address, a few at any time; as soon as one has its answer, the next
 * one asks. Prints how long they waited.
 * usage: ask PORT NAME COUNT
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* Few enough for the daemon's socket buffer: no request is lost however long it is held up. */
enum { AT_A_TIME = 32 };

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void ask(int fd, const char *name, long client)
{
	char request[128];
	int length = snprintf(request, sizeof request, "%s %ld", name, client);
	if (send(fd, request, (size_t)length, 0) != length)
		err(1, "send");
}

/* Waits for any answer, and returns whose it is. */
static long answered(int fd, const char *name, long count)
{
	char reply[128], to[32];
	long client;
	unsigned a, b, c;
	ssize_t length = recv(fd, reply, sizeof reply - 1, 0);
	if (length < 0)
		err(1, "no answer");
	reply[length] = 0;
	if (sscanf(reply, "%31s %ld 10.%u.%u.%u", to, &client, &a, &b, &c) != 5 || strcmp(to, name) != 0 ||
	    client < 1 || client > count || (a << 16 | b << 8 | c) != client)
		errx(1, "wrong answer: %s", reply);
	return client;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		errx(2, "usage: ask PORT NAME COUNT");
	const char *name = argv[2];
	long count = strtol(argv[3], NULL, 10);
	struct sockaddr_in there = {
		.sin_family = AF_INET,
		.sin_port = htons((unsigned short)atoi(argv[1])),
		.sin_addr = {htonl(INADDR_LOOPBACK)},
	};
	/* As a real client, which gives up some day. */
	const struct timeval timeout = {.tv_sec = 30};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&there, sizeof there) != 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) != 0)
		err(1, "port %s", argv[1]);

	double *waited = calloc((size_t)count + 1, sizeof *waited); /* asked at, until answered */
	char *has = calloc((size_t)count + 1, 1);
	if (count < 1 || !waited || !has)
		errx(1, "%s clients", argv[3]);
	long asked = 0;
	for (long done = 0; done < count; done++) {
		for (; asked < count && asked - done < AT_A_TIME; asked++) {
			waited[asked + 1] = now_ms();
			ask(fd, name, asked + 1);
		}
		long client = answered(fd, name, count);
		if (client > asked || has[client]++)
			errx(1, "an answer too many for client %ld", client);
		waited[client] = now_ms() - waited[client];
	}

	double *sorted = waited + 1;
	qsort(sorted, (size_t)count, sizeof *sorted, ascending);
	printf("%ld answered: p50 %.3f ms, p99 %.3f ms, max %.3f ms\n", count, sorted[(count - 1) / 2],
	       sorted[(count - 1) * 99 / 100], sorted[count - 1]);
	return 0;
}
