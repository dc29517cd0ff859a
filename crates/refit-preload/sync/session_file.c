#include "session_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "prim.h"

static char *put_hex(char *to, uint64_t n)
{
	for (int shift = 60; shift >= 0; shift -= 4) {
		*to++ = "0123456789abcdef"[(n >> shift) & 15];
	}
	return to;
}

/* The file has a name that nobody can guess or take first, and no other user can
 * open it. */
void *refit_map_session_file(const char *session, size_t size,
			     size_t allocated)
{
	struct rlimit most;
	/* Beyond it fallocate would raise SIGXFSZ, which kills. */
	if (prim_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &most) < 0 ||
	    most.rlim_cur < size) {
		return NULL;
	}
	char path[512];
	uint64_t random[2] = {0, 0};
	if (prim_syscall(SYS_getrandom, random, sizeof random,
			 1 /* GRND_NONBLOCK */, 0) != sizeof random) {
		random[0] = prim_clock_ns();
		random[1] = (uint64_t)(uintptr_t)path;
	}
	char *end = prim_copy(path, session, sizeof path - 64);
	end = prim_copy(end, "/images/", 9);
	end = put_hex(end, random[0]);
	end = put_hex(end, random[1]);
	*end = '\0';
	long fd = prim_syscall(SYS_openat, AT_FDCWD, path,
			       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW |
				       O_CLOEXEC,
			       0600);
	if (fd < 0) {
		return NULL;
	}
	long at = -1;
	/* fallocate(2) makes the file as long as what it allocates. */
	if ((allocated == size ||
	     prim_syscall(SYS_ftruncate, fd, size, 0, 0) == 0) &&
	    prim_syscall(SYS_fallocate, fd, 0, 0, allocated) == 0) {
		at = prim_syscall6(SYS_mmap, 0, (long)size,
				   PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	int is_mapped = (unsigned long)at <= -4096ul;
	if (!is_mapped) {
		prim_syscall(SYS_unlinkat, AT_FDCWD, path, 0, 0);
	}
	prim_syscall(SYS_close, fd, 0, 0, 0);
	return is_mapped ? (void *)at : NULL;
}
