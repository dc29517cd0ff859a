/* argv: CHUNKS PAIRS. Replaces a random one of 20,000 blocks of 8 to 507 bytes, PAIRS times in each of CHUNKS chunks, and
 * prints the nanoseconds of processor time for one free and malloc, of the median chunk. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BLOCKS 20000

static void *blocks[BLOCKS];

static int by_value(const void *a, const void *b) {
	double difference = *(const double *)a - *(const double *)b;
	return (difference > 0) - (difference < 0);
}

static double now_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv) {
	int chunks = argc > 2 ? atoi(argv[1]) : 0;
	long pairs = argc > 2 ? atol(argv[2]) : 0;
	if (chunks < 1 || chunks > 1000 || pairs < 1)
		return 2;
	static double took[1000];
	uint64_t x = 88172645463325252u;
	for (int chunk = -1; chunk < chunks; chunk++) { /* the first one fills the blocks */
		double began = now_ns();
		for (long i = 0; i < (chunk < 0 ? BLOCKS : pairs); i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			uint64_t k = chunk < 0 ? (uint64_t)i : x % BLOCKS;
			free(blocks[k]);
			blocks[k] = malloc(8 + (x >> 40) % 500);
			if (!blocks[k])
				return 1;
			*(volatile char *)blocks[k] = 1;
		}
		if (chunk >= 0)
			took[chunk] = (now_ns() - began) / (double)pairs;
	}
	qsort(took, (size_t)chunks, sizeof *took, by_value);
	printf("%.2f\n", took[chunks / 2]);
	return 0;
}
