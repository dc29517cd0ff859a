/* Burns a given amount of processor time and nothing else.
 *
 * burn STEPS
 * Each step needs the result of the one before, so the time is proportional to their number. The variable
 * MORE, where it is set, adds that many per cent: an effect of a known size.
 */
#include <stdint.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	const char *more = getenv("MORE");
	double per_cent = more ? atof(more) : 0;
	uint64_t steps = (uint64_t)(atof(argv[1]) * (1 + per_cent / 100));
	uint64_t x = 1;
	for (uint64_t i = 0; i < steps; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(x));
	}
	return 0;
}
