#include "fd_link.h"

#include "prim.h"

void refit_fd_link(int fd, char link[REFIT_FD_LINK])
{
	char digits[12];
	int count = 0;
	unsigned n = (unsigned)fd;
	do {
		digits[count++] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	char *end = prim_copy(link, "/proc/self/fd/", REFIT_FD_LINK);
	while (count) {
		*end++ = digits[--count];
	}
	*end = '\0';
}
