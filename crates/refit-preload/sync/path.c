#include "path.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "own_seccomp.h"

/* In another root the same words name another file (chroot(2),
 * pivot_root(2)). */
static int is_our_root(void)
{
	struct stat st;
	return prim_syscall(SYS_newfstatat, AT_FDCWD, "/", &st, 0) == 0 &&
	       st.st_dev == refit.policy->root_dev &&
	       st.st_ino == refit.policy->root_ino;
}

/* The kernel appends " (deleted)" to the path of a file without a name
 * (proc_pid_fd(5)); a file may also be called that. */
static long without_deleted(int fd, char *path, long length)
{
	static const char mark[] = " (deleted)";
	const long before = length - (long)(sizeof mark - 1);
	struct stat st;
	if (before > 0 && prim_equal(path + before, mark) &&
	    prim_syscall(SYS_fstat, fd, &st, 0, 0) == 0 && st.st_nlink == 0) {
		path[before] = '\0';
		return before;
	}
	return length;
}

long refit_path_of(int fd, char path[REFIT_PATH])
{
	if (fd < 0) {
		path[0] = '\0';
		return 0;
	}
	if (!refit.policy || refit_beneath_own_seccomp() || !is_our_root()) {
		return -1;
	}
	char link[REFIT_FD_LINK];
	refit_fd_link(fd, link);
	long length = prim_syscall(SYS_readlinkat, AT_FDCWD, link, path,
				   REFIT_PATH);
	if (length < 0 || length >= REFIT_PATH) {
		return -1;
	}
	path[length] = '\0';
	if (path[0] != '/') { /* "pipe:[1234]" */
		path[0] = '\0';
		return 0;
	}
	return without_deleted(fd, path, length);
}
