/* Logs so many lines through a socket like syslog(3)'s and waits until all of them are in the file.
 * usage: lines SOCKET FILE TAG COUNT
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* A datagram socket which blocks while the other side has no room: what syslog(3) uses. */
static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof address.sun_path)
		errx(2, "%s: too long for a socket", path);
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
		err(1, "%s", path);
	return fd;
}

static void send_lines(int fd, const char *tag, long count)
{
	char date[32], line[256];
	time_t today = time(NULL);
	strftime(date, sizeof date, "%b %e %H:%M:%S", localtime(&today));
	for (long n = 1; n <= count; n++) {
		int length = snprintf(line, sizeof line, "<14>%s %s[%d]: line %ld of %ld, which is about as long as they are",
				      date, tag, (int)getpid(), n, count);
		if (send(fd, line, (size_t)length, 0) != length)
			err(1, "send");
	}
}

/* Reads what was added to the file, until there are so many lines that begin like ours. */
static void wait_for_lines(const char *path, const char *tag, long count)
{
	/* The daemon makes the file with its first line. */
	FILE *file = NULL;
	const struct timespec pause = {.tv_nsec = 1000000};
	char needle[64], line[4096];
	size_t used = 0;
	snprintf(needle, sizeof needle, " %s[%d]: ", tag, (int)getpid());
	for (long seen = 0; seen < count;) {
		if (!file)
			file = fopen(path, "r");
		if (!file || !fgets(line + used, (int)(sizeof line - used), file)) {
			if (file)
				clearerr(file);
			nanosleep(&pause, NULL);
			continue;
		}
		/* A line may be there in part. */
		used += strlen(line + used);
		if (line[used - 1] != '\n') {
			if (used + 1 == sizeof line)
				errx(1, "%s: a line of more than 4 KB", path);
			continue;
		}
		seen += strstr(line, needle) != NULL;
		used = 0;
	}
	fclose(file);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		errx(2, "usage: lines SOCKET FILE TAG COUNT");
	long count = strtol(argv[4], NULL, 10);
	int fd = connect_to(argv[1]);

	double began = now();
	send_lines(fd, argv[3], count);
	double sent = now();
	wait_for_lines(argv[2], argv[3], count);
	double written = now();

	printf("sent %.0f lines/s, written %.0f lines/s\n", count / (sent - began), count / (written - began));
	return 0;
}
