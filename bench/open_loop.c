/* Times open(O_RDONLY) and close of a plain file.
 *
 * open_loop FILE CHUNKS CALLS
 * Prints the median chunk, in ns per open and close together.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "timing.h"

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	int chunks = atoi(argv[2]);
	long calls = atol(argv[3]);
	double *ns = calloc((size_t)chunks, sizeof *ns);
	if (chunks < 1 || calls < 1 || !ns)
		return 3;
	for (int chunk = 0; chunk < chunks; chunk++) {
		double began = now_ns();
		for (long i = 0; i < calls; i++) {
			int fd = open(argv[1], O_RDONLY);
			if (fd < 0 || close(fd) != 0)
				return 4;
		}
		ns[chunk] = (now_ns() - began) / (double)calls;
	}
	printf("%.3f\n", median(ns, chunks));
	return 0;
}
