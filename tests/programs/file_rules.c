/* file_rules CASE: what many programs do to files, right and wrong, in the current directory. Each case is named after what it
 * does; tests/src/durability.rs says which rules it breaks. A file "old" lies there before. */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char text[] = "new content\n";
#define SIZE (sizeof text - 1)

static int checked(long result, const char *what)
{
	if (result < 0) {
		err(2, "%s", what);
	}
	return (int)result;
}
#define CHECK(call) checked((call), #call)

static int create(const char *path)
{
	return CHECK(open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644));
}

/* The place that findings of data name. */
static void put(int fd)
{
	CHECK(write(fd, text, SIZE));
}

static void sync_directory(const char *path)
{
	int fd = CHECK(open(path, O_RDONLY | O_DIRECTORY));
	CHECK(fsync(fd));
	close(fd);
}

static void acknowledge(void)
{
	CHECK(write(1, "done\n", 5));
}

/* A new file, with or without syncs of its data and of its name. */
static void make(const char *path, int syncs)
{
	int fd = create(path);
	put(fd);
	if (syncs) {
		CHECK(fsync(fd));
	}
	close(fd);
	if (syncs) {
		sync_directory(".");
	}
}

/* ---- a file is replaced --------------------------------------------------- */

enum { NO_SYNC, FSYNC, FDATASYNC, NO_DIRECTORY };

static void replace(int how)
{
	int fd = create("new");
	put(fd);
	if (how == FSYNC || how == NO_DIRECTORY) {
		CHECK(fsync(fd));
	} else if (how == FDATASYNC) {
		CHECK(fdatasync(fd));
	}
	close(fd);
	CHECK(rename("new", "old"));
	if (how == FSYNC || how == FDATASYNC) {
		sync_directory(".");
	}
}

static void replace_no_sync(void) { replace(NO_SYNC); }
static void replace_fsync(void) { replace(FSYNC); }
static void replace_fdatasync(void) { replace(FDATASYNC); }
static void replace_no_directory(void) { replace(NO_DIRECTORY); }

static void replace_after(void (*change)(int fd))
{
	int fd = CHECK(open("new", O_CREAT | O_RDWR, 0644));
	CHECK(fsync(fd));
	change(fd);
	close(fd);
	CHECK(rename("new", "old"));
}

static void by_pwrite(int fd) { CHECK(pwrite(fd, text, SIZE, 0)); }
static void by_writev(int fd)
{
	struct iovec part = {(void *)text, SIZE};
	CHECK(writev(fd, &part, 1));
}
static void by_pwritev(int fd)
{
	struct iovec part = {(void *)text, SIZE};
	CHECK(pwritev(fd, &part, 1, 0));
}
static void by_sendfile(int fd)
{
	int from = CHECK(open("old", O_RDONLY));
	CHECK(sendfile(fd, from, NULL, 100));
	close(from);
}
static void by_copy(int fd)
{
	int from = CHECK(open("old", O_RDONLY));
	CHECK(copy_file_range(from, NULL, fd, NULL, 100, 0));
	close(from);
}
static void by_splice(int fd)
{
	int ends[2];
	CHECK(pipe(ends));
	CHECK(write(ends[1], text, SIZE));
	CHECK(splice(ends[0], NULL, fd, NULL, SIZE, 0));
}
static void by_fallocate(int fd) { CHECK(fallocate(fd, 0, 0, 4096)); }
static void by_ftruncate(int fd) { CHECK(ftruncate(fd, 4096)); }
static void by_child(int fd)
{
	pid_t child = fork();
	if (child == 0) {
		put(fd);
		_exit(0);
	}
	CHECK(waitpid(child, NULL, 0));
}

static void replace_pwrite(void) { replace_after(by_pwrite); }
static void replace_writev(void) { replace_after(by_writev); }
static void replace_pwritev(void) { replace_after(by_pwritev); }
static void replace_sendfile(void) { replace_after(by_sendfile); }
static void replace_copy(void) { replace_after(by_copy); }
static void replace_splice(void) { replace_after(by_splice); }
static void replace_fallocate(void) { replace_after(by_fallocate); }
static void replace_ftruncate(void) { replace_after(by_ftruncate); }
static void replace_child(void) { replace_after(by_child); }

static void replace_renameat2(void)
{
	make("new", 0);
	CHECK(renameat2(AT_FDCWD, "new", AT_FDCWD, "old", 0));
}

/* The same file twice: the second time after a sync. */
static void replace_twice(void)
{
	int fd = create("new");
	put(fd);
	CHECK(fsync(fd));
	put(fd);
	close(fd);
	CHECK(rename("new", "old"));
}

static void replace_stream(void)
{
	FILE *to = fopen("new", "w");
	fputs(text, to);
	fclose(to);
	CHECK(rename("new", "old"));
}

static void replace_stream_synced(void)
{
	FILE *to = fopen("new", "w");
	fputs(text, to);
	fflush(to);
	CHECK(fsync(fileno(to)));
	fclose(to);
	CHECK(rename("new", "old"));
	sync_directory(".");
}

static void replace_stream_not_flushed(void)
{
	FILE *to = fopen("new", "w");
	fputs(text, to);
	CHECK(fsync(fileno(to)));
	fclose(to);
	CHECK(rename("new", "old"));
}

static void replace_large_stream(void)
{
	FILE *to = fopen("new", "w");
	for (int i = 0; i < 10000; i++) {
		fputs(text, to);
	}
	fflush(to);
	CHECK(fsync(fileno(to)));
	for (int i = 0; i < 10000; i++) {
		fputs(text, to);
	}
	fclose(to);
	CHECK(rename("new", "old"));
}

/* ---- syncs that cover it, by other ways ----------------------------------- */

static void covered_by_syncfs(void)
{
	int fd = create("new");
	put(fd);
	CHECK(syncfs(fd));
	CHECK(rename("new", "old"));
	CHECK(syncfs(fd));
}

static void covered_by_sync(void)
{
	make("new", 0);
	sync();
	CHECK(rename("new", "old"));
	sync();
}

static void covered_by_dup(void)
{
	int fd = create("new"), other = dup(fd);
	put(fd);
	CHECK(fsync(other));
	CHECK(rename("new", "old"));
	sync_directory(".");
}

static void covered_by_reader(void)
{
	make("new", 0);
	int fd = CHECK(open("new", O_RDONLY));
	CHECK(fsync(fd));
	CHECK(rename("new", "old"));
	sync_directory(".");
}

static void covered_by_child(void)
{
	int fd = create("new");
	put(fd);
	pid_t child = fork();
	if (child == 0) {
		_exit(fsync(fd) != 0);
	}
	CHECK(waitpid(child, NULL, 0));
	CHECK(rename("new", "old"));
	sync_directory(".");
}

static void covered_by_link(void)
{
	make("new", 0);
	CHECK(link("new", "second"));
	int fd = CHECK(open("second", O_RDWR));
	CHECK(fsync(fd));
	CHECK(rename("new", "old"));
	sync_directory(".");
}

/* The descriptor is passed to another process, which syncs. */
static void covered_by_passed(void)
{
	int ends[2];
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	pid_t child = fork();
	char room[CMSG_SPACE(sizeof(int))] = {0};
	char byte = 'x';
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
	if (child == 0) {
		CHECK(recvmsg(ends[1], &message, 0));
		int fd;
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
		_exit(fsync(fd) != 0);
	}
	int fd = create("new");
	put(fd);
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	CHECK(sendmsg(ends[0], &message, 0));
	int status = 1;
	CHECK(waitpid(child, &status, 0));
	if (status != 0) {
		errx(2, "the child failed");
	}
	CHECK(rename("new", "old"));
	sync_directory(".");
}

static void covered_by_dsync(void)
{
	int fd = CHECK(open("new", O_CREAT | O_WRONLY | O_DSYNC, 0644));
	put(fd);
	CHECK(rename("new", "old"));
	sync_directory(".");
}

static void covered_by_rwf(void)
{
	int fd = create("new");
	struct iovec part = {(void *)text, SIZE};
	CHECK(pwritev2(fd, &part, 1, 0, RWF_DSYNC));
	CHECK(rename("new", "old"));
	sync_directory(".");
}

static void covered_by_msync(void)
{
	int fd = CHECK(open("new", O_CREAT | O_RDWR, 0644));
	CHECK(ftruncate(fd, 4096));
	char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	strcpy(at, text);
	CHECK(msync(at, 4096, MS_SYNC));
	CHECK(fsync(fd));
	sync_directory(".");
	acknowledge();
}

/* ---- syncs that cover nothing --------------------------------------------- */

static void wrong_range(void)
{
	int fd = create("new");
	put(fd);
	CHECK(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
	acknowledge();
}

static void range_then_fsync(void)
{
	int fd = create("new");
	put(fd);
	CHECK(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
	CHECK(fsync(fd));
	sync_directory(".");
	acknowledge();
}

static void wrong_msync(void)
{
	int fd = CHECK(open("new", O_CREAT | O_RDWR, 0644));
	CHECK(ftruncate(fd, 4096));
	char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	strcpy(at, text);
	CHECK(msync(at, 4096, MS_ASYNC));
	acknowledge();
}

static void wrong_only_directory(void)
{
	make("new", 0);
	sync_directory(".");
	acknowledge();
}

static void wrong_directory(void)
{
	CHECK(mkdir("a", 0755));
	CHECK(mkdir("b", 0755));
	sync_directory(".");
	int fd = create("a/tmp");
	put(fd);
	CHECK(fsync(fd));
	CHECK(rename("a/tmp", "a/new"));
	sync_directory("b");
	acknowledge();
}

/* ---- in place ------------------------------------------------------------- */

static void overwrite_truncated(void)
{
	int fd = CHECK(open("old", O_WRONLY | O_TRUNC));
	put(fd);
	CHECK(fsync(fd));
}

static void overwrite_stream(void)
{
	FILE *to = fopen("old", "w");
	fputs(text, to);
	fflush(to);
	CHECK(fsync(fileno(to)));
	fclose(to);
}

static void overwrite_ftruncate(void)
{
	int fd = CHECK(open("old", O_RDWR));
	CHECK(ftruncate(fd, 0));
	put(fd);
	CHECK(fsync(fd));
}

static void overwrite_truncate(void)
{
	CHECK(truncate("old", 0));
	int fd = CHECK(open("old", O_WRONLY));
	put(fd);
	CHECK(fsync(fd));
}

static void append(void)
{
	int fd = CHECK(open("old", O_WRONLY | O_APPEND));
	put(fd);
	CHECK(fsync(fd));
	acknowledge();
}

/* Nothing durable was in it. */
static void truncate_own(void)
{
	make("new", 0);
	int fd = create("new");
	put(fd);
	CHECK(fsync(fd));
	sync_directory(".");
}

static void empty_durably(void)
{
	int fd = CHECK(open("old", O_RDWR));
	CHECK(ftruncate(fd, 0));
	CHECK(fsync(fd));
	put(fd);
	CHECK(fsync(fd));
}

/* ---- acknowledgements ----------------------------------------------------- */

static void ack_before_sync(void)
{
	int fd = CHECK(open("old", O_WRONLY | O_APPEND));
	put(fd);
	acknowledge();
	CHECK(fsync(fd));
}

static void ack_by_stream(void)
{
	int fd = CHECK(open("old", O_WRONLY | O_APPEND));
	put(fd);
	printf("done\n");
	fflush(stdout);
	CHECK(fsync(fd));
}

static void ack_after_syncs(void)
{
	make("new", 1);
	acknowledge();
}

static void ack_before_directory(void)
{
	int fd = create("tmp");
	put(fd);
	CHECK(fsync(fd));
	CHECK(rename("tmp", "new"));
	acknowledge();
	sync_directory(".");
}

static void ack_after_child(void)
{
	pid_t child = fork();
	if (child == 0) {
		int fd = CHECK(open("old", O_WRONLY | O_APPEND));
		put(fd);
		_exit(0);
	}
	CHECK(waitpid(child, NULL, 0));
	acknowledge();
}

static void ack_of_directories(void)
{
	CHECK(mkdir("a", 0755));
	CHECK(mkdir("a/b", 0755));
	make("a/b/new", 0);
	int fd = CHECK(open("a/b/new", O_RDONLY));
	CHECK(fsync(fd));
	sync_directory("a/b");
	acknowledge();
}

static void ack_of_synced_directories(void)
{
	CHECK(mkdir("a", 0755));
	CHECK(mkdir("a/b", 0755));
	int fd = create("a/b/new");
	put(fd);
	CHECK(fsync(fd));
	sync_directory("a/b");
	sync_directory("a");
	sync_directory(".");
	acknowledge();
}

static void ack_of_unnamed(int syncs)
{
	int fd = CHECK(open(".", O_TMPFILE | O_RDWR, 0644));
	put(fd);
	if (syncs) {
		CHECK(fsync(fd));
	}
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	CHECK(linkat(AT_FDCWD, path, AT_FDCWD, "new", AT_SYMLINK_FOLLOW));
	if (syncs) {
		sync_directory(".");
	}
	acknowledge();
}
static void ack_of_unnamed_synced(void) { ack_of_unnamed(1); }
static void ack_of_unnamed_unsynced(void) { ack_of_unnamed(0); }

/* ---- removals ------------------------------------------------------------- */

static void remove_before_copy(void)
{
	make("old.gz", 0);
	CHECK(unlink("old"));
}

static void remove_after_copy(void)
{
	make("old.gz", 1);
	CHECK(unlink("old"));
}

static void remove_backup(int syncs)
{
	CHECK(rename("old", "backup"));
	make("old", syncs);
	CHECK(unlink("backup"));
}
static void remove_backup_early(void) { remove_backup(0); }
static void remove_backup_late(void) { remove_backup(1); }

static void remove_and_rename(void)
{
	make("new", 0);
	CHECK(unlink("old"));
	CHECK(rename("new", "old"));
}

/* The next entry of a journal is begun under the temporary name of the one before. */
static void journal_of_temporary(void)
{
	for (int i = 0; i < 2; i++) {
		make("next", 1);
		CHECK(rename("next", "entry"));
		sync_directory(".");
		make("next", 0);
		CHECK(unlink("entry"));
		sync_directory(".");
	}
	CHECK(unlink("next"));
}

static void temporary(void)
{
	make("new", 0);
	CHECK(unlink("new"));
}

/* ---- errors --------------------------------------------------------------- */

static void error_ignored(void)
{
	int fd = CHECK(open("old", O_WRONLY | O_APPEND));
	put(fd);
	(void)!fsync(fd);
}

/* Beneath a disk that fails each second sync. */
static void error_retried(void)
{
	int fd = CHECK(open("old", O_WRONLY | O_APPEND));
	CHECK(fsync(fd));
	put(fd);
	while (fsync(fd) != 0) {
	}
}

static void error_fatal(void)
{
	int fd = CHECK(open("old", O_WRONLY | O_APPEND));
	put(fd);
	CHECK(fsync(fd));
}

static void error_rewritten(void)
{
	int fd = CHECK(open("old", O_WRONLY));
	CHECK(fsync(fd));
	do {
		CHECK(pwrite(fd, text, SIZE, 0));
	} while (fsync(fd) != 0);
}

/* ---- order ---------------------------------------------------------------- */

static void order(int syncs)
{
	int first = create("first"), second = create("second");
	put(first);
	if (syncs) {
		CHECK(fsync(first));
	}
	put(second);
	CHECK(fsync(second));
	sync_directory(".");
}
static void order_assumed(void) { order(0); }
static void order_kept(void) { order(1); }

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
#define CASE(name) {#name, name},
	CASE(replace_no_sync) CASE(replace_fsync) CASE(replace_fdatasync) CASE(replace_no_directory) CASE(replace_pwrite)
	CASE(replace_writev) CASE(replace_pwritev) CASE(replace_sendfile) CASE(replace_copy) CASE(replace_splice)
	CASE(replace_fallocate) CASE(replace_ftruncate) CASE(replace_child) CASE(replace_renameat2) CASE(replace_twice)
	CASE(replace_stream) CASE(replace_stream_synced) CASE(replace_stream_not_flushed) CASE(replace_large_stream)
	CASE(covered_by_syncfs) CASE(covered_by_sync) CASE(covered_by_dup) CASE(covered_by_reader) CASE(covered_by_child)
	CASE(covered_by_link) CASE(covered_by_passed) CASE(covered_by_dsync) CASE(covered_by_rwf) CASE(covered_by_msync)
	CASE(wrong_range) CASE(range_then_fsync) CASE(wrong_msync) CASE(wrong_only_directory) CASE(wrong_directory)
	CASE(overwrite_truncated) CASE(overwrite_stream) CASE(overwrite_ftruncate) CASE(overwrite_truncate) CASE(append)
	CASE(truncate_own) CASE(empty_durably) CASE(ack_before_sync) CASE(ack_by_stream) CASE(ack_after_syncs)
	CASE(ack_before_directory) CASE(ack_after_child) CASE(ack_of_directories) CASE(ack_of_synced_directories)
	CASE(ack_of_unnamed_synced) CASE(ack_of_unnamed_unsynced) CASE(remove_before_copy) CASE(remove_after_copy)
	CASE(remove_backup_early) CASE(remove_backup_late) CASE(remove_and_rename) CASE(journal_of_temporary)
	CASE(temporary) CASE(error_ignored)
	CASE(error_retried) CASE(error_fatal) CASE(error_rewritten) CASE(order_assumed) CASE(order_kept)
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++) {
		if (strcmp(cases[i].name, argv[1]) == 0) {
			cases[i].run();
			return 0;
		}
	}
	/* All names, so that a test can see that it has each. */
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		puts(cases[i].name);
	}
	return argc != 1;
}
