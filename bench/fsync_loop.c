/* Times fsync, and the kernel's cheapest answer about a descriptor beside it.
 *
 * fsync_loop FILE CHUNKS CALLS PROBES
 * Each chunk is CALLS times fsync and then PROBES times sync_file_range(fd, 0, 0, 0) by a system call
 * instruction of its own, which no preload sees. Prints the median chunk of each, in ns per call.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "timing.h"

#ifndef __x86_64__
#error "the probe below is written for x86-64"
#endif

static long probe(int fd)
{
	long result = SYS_sync_file_range;
	register long flags __asm__("r10") = 0;
	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"((long)fd), "S"(0L), "d"(0L), "r"(flags)
			 : "rcx", "r11", "memory");
	return result;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	int chunks = atoi(argv[2]);
	long calls = atol(argv[3]), probes = atol(argv[4]);
	int fd = open(argv[1], O_RDWR | O_CREAT, 0644);
	double *fsyncs = calloc((size_t)chunks, sizeof *fsyncs);
	double *raw = calloc((size_t)chunks, sizeof *raw);
	if (fd < 0 || chunks < 1 || calls < 1 || !fsyncs || !raw)
		return 3;
	for (int chunk = 0; chunk < chunks; chunk++) {
		double began = now_ns();
		for (long i = 0; i < calls; i++)
			if (fsync(fd) != 0)
				return 4;
		double between = now_ns();
		for (long i = 0; i < probes; i++)
			if (probe(fd) != 0)
				return 5;
		double ended = now_ns();
		fsyncs[chunk] = (between - began) / (double)calls;
		raw[chunk] = probes ? (ended - between) / (double)probes : 0;
	}
	printf("%.3f %.3f\n", median(fsyncs, chunks), median(raw, chunks));
	return 0;
}
