/* sparse_pages N: writes to one page in each of N aligned windows of 2 MiB, prints a line, and ends with its input. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>

int main(int argc, char **argv)
{
	size_t windows = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	const size_t huge = 2 << 20;

	/* Whatever the machine's mode is. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	char *memory = mmap(NULL, (windows + 1) * huge, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		return 1;
	}
	memory += huge - (uintptr_t)memory % huge;
	for (size_t i = 0; i < windows; i++) {
		memory[i * huge] = 1;
	}
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
