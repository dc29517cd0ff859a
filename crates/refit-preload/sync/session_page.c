#include "session_page.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>

#include "own_seccomp.h"
#include "prim.h"
#include "session_file.h"

static void *map(long fd, size_t size, int protection)
{
	long at = prim_syscall6(SYS_mmap, 0, (long)size, protection,
				MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd,
				0);
	return prim_failed(at) ? NULL : (void *)at;
}

/* As ld.so does it: that of glibc from 2.33 to 2.38 by newfstatat(2). */
static long look_at(long fd, struct stat *st)
{
	unsigned glibc = refit_glibc();
	return glibc >= 33 && glibc <= 38
		       ? prim_syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH)
		       : prim_syscall(SYS_fstat, fd, st, 0, 0);
}

const struct refit_policy *refit_map_policy(const char *session)
{
	char path[512];
	char *end = prim_copy(path, session, sizeof path - 8);
	prim_copy(end, "/policy", 8);
	/* Where the session is gone, a FIFO of that name may be somebody else's. */
	long fd = prim_syscall(SYS_openat, AT_FDCWD, path,
			       O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
			       0);
	if (fd < 0) {
		return NULL;
	}
	struct stat st;
	const struct refit_policy *policy = NULL;
	uint32_t me = (uint32_t)getauxval(AT_EUID);
	/* A page that another user could truncate would kill us with SIGBUS. */
	if (look_at(fd, &st) == 0 &&
	    S_ISREG(st.st_mode) && (st.st_uid == 0 || st.st_uid == me) &&
	    st.st_size == sizeof *policy) {
		policy = map(fd, sizeof *policy, PROT_READ);
	}
	prim_syscall(SYS_close, fd, 0, 0, 0);
	if (policy && (policy->magic != REFIT_MAGIC ||
		       policy->version != REFIT_VERSION)) {
		prim_syscall(SYS_munmap, policy, sizeof *policy, 0, 0);
		return NULL;
	}
	return policy;
}

int refit_starts_in_our_root(void)
{
	struct stat st;
	long fd = prim_syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_CLOEXEC,
			       0);
	int is_ours = fd >= 0 && look_at(fd, &st) == 0 &&
		      st.st_dev == refit.policy->root_dev &&
		      st.st_ino == refit.policy->root_ino;
	if (fd >= 0) {
		prim_syscall(SYS_close, fd, 0, 0, 0);
	}
	return is_ours;
}

/* Each page takes each exec'ed program a microsecond or two: all of them are
 * allocated here, so that no write finds the file system full. */
_Static_assert(sizeof(struct refit_image) <= 4 * 4096, "four pages");
_Static_assert(offsetof(struct refit_image, slots[2]) <= 4096, "one is written");

struct refit_image *refit_map_image(const char *session)
{
	size_t size = sizeof(struct refit_image);
	return refit_map_session_file(session, size, size);
}

struct refit_event_ring *refit_map_event_ring(int id)
{
	if (id < 0) {
		return NULL;
	}
	long at = prim_syscall(SYS_shmat, id, NULL, 0, 0);
	struct shmid_ds about;
	if (prim_failed(at)) {
		return NULL;
	}
	/* In another IPC namespace the id may be another segment's
	 * (ipc_namespaces(7)). */
	if (prim_syscall(SYS_shmctl, id, IPC_STAT, &about, 0) != 0 ||
	    about.shm_segsz != sizeof(struct refit_event_ring)) {
		prim_syscall(SYS_shmdt, at, 0, 0, 0);
		return NULL;
	}
	return (struct refit_event_ring *)at;
}

struct refit_mark *refit_map_mark(void)
{
	void *page = map(-1, 4096, PROT_READ | PROT_WRITE);
	/* Linux 4.14; without it the fork handler alone clears the mark. */
	if (page) {
		prim_syscall(SYS_madvise, page, 4096, 18 /* MADV_WIPEONFORK */,
			     0);
	}
	return page;
}
