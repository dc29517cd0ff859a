/* Times a system call that no filter asks about: getppid.
 *
 * call_loop CHUNKS CALLS
 * Prints the median chunk in ns per call.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "timing.h"

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	int chunks = atoi(argv[1]);
	long calls = atol(argv[2]);
	double *taken = calloc((size_t)chunks, sizeof *taken);
	if (chunks < 1 || calls < 1 || !taken)
		return 3;
	for (int chunk = 0; chunk < chunks; chunk++) {
		double began = now_ns();
		for (long i = 0; i < calls; i++)
			if (syscall(SYS_getppid) < 0)
				return 4;
		taken[chunk] = (now_ns() - began) / (double)calls;
	}
	printf("%.3f\n", median(taken, chunks));
	return 0;
}
