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
static long make(const char *session, size_t size, size_t allocated,
		 char *path, size_t path_size)
{
	/* Set although the kernel fills it: GCC 14's analyzer does not see that. */
	struct rlimit most = {0, 0};
	/* Beyond it fallocate would raise SIGXFSZ, which kills. */
	if (prim_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &most) < 0 ||
	    most.rlim_cur < size) {
		return -1;
	}
	uint64_t random[2] = {0, 0};
	if (prim_syscall(SYS_getrandom, random, sizeof random,
			 1 /* GRND_NONBLOCK */, 0) != sizeof random) {
		random[0] = prim_clock_ns();
		random[1] = (uint64_t)(uintptr_t)path;
	}
	char *end = prim_copy(path, session, path_size - 64);
	end = prim_copy(end, "/images/", 9);
	end = put_hex(end, random[0]);
	end = put_hex(end, random[1]);
	*end = '\0';
	long fd = prim_syscall(SYS_openat, AT_FDCWD, path,
			       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW |
				       O_CLOEXEC,
			       0600);
	if (fd < 0) {
		return -1;
	}
	/* fallocate(2) makes the file as long as what it allocates. */
	if ((allocated == size ||
	     prim_syscall(SYS_ftruncate, fd, size, 0, 0) == 0) &&
	    prim_syscall(SYS_fallocate, fd, 0, 0, allocated) == 0) {
		return fd;
	}
	prim_syscall(SYS_unlinkat, AT_FDCWD, path, 0, 0);
	prim_syscall(SYS_close, fd, 0, 0, 0);
	return -1;
}

#define PATH_SIZE 512

long refit_make_session_file(const char *session, size_t size,
			     size_t allocated)
{
	char path[PATH_SIZE];
	return make(session, size, allocated, path, sizeof path);
}

void *refit_map_part(long fd, size_t at, size_t size)
{
	long mapped = prim_syscall6(SYS_mmap, 0, (long)size,
				    PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				    (long)at);
	return prim_failed(mapped) ? NULL : (void *)mapped;
}

void *refit_map_session_file(const char *session, size_t size,
			     size_t allocated)
{
	char path[PATH_SIZE];
	long fd = make(session, size, allocated, path, sizeof path);
	if (fd < 0) {
		return NULL;
	}
	void *mapped = refit_map_part(fd, 0, size);
	if (!mapped) {
		prim_syscall(SYS_unlinkat, AT_FDCWD, path, 0, 0);
	}
	prim_syscall(SYS_close, fd, 0, 0, 0);
	return mapped;
}
