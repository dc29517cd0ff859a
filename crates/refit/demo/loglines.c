/* One line after another into a log file, as a syslog daemon writes them, for
 * a given time; then how many there were.
 *
 *   loglines FILE MODE MILLISECONDS      MODE: none, fflush, fsync or both
 *
 * prints: LINES NANOSECONDS
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fputs("usage: loglines FILE MODE MILLISECONDS\n", stderr);
		return 2;
	}
	int both = !strcmp(argv[2], "both");
	int flushes = both || !strcmp(argv[2], "fflush");
	int syncs = both || !strcmp(argv[2], "fsync");
	FILE *log = fopen(argv[1], "w");
	if (!log) {
		perror(argv[1]);
		return 1;
	}
	long long began = now_ns();
	long long end = began + atoll(argv[3]) * 1000000ll;
	long long lines = 0;
	/* The clock is read once for many lines where a line is cheap. */
	long long step = syncs ? 1 : 64;
	long long now = began;
	while (now < end) {
		for (long long i = 0; i < step; i++, lines++) {
			fprintf(log, "<30>dhcpd: DHCPACK on 192.0.2.%lld\n",
				lines & 255);
			if (flushes && fflush(log)) {
				perror("fflush");
				return 1;
			}
			if (syncs && fsync(fileno(log))) {
				perror("fsync");
				return 1;
			}
		}
		now = now_ns();
	}
	printf("%lld %lld\n", lines, now - began);
	return fclose(log) ? 1 : 0;
}
