// build: -static
// argv: DIRECTORY [UID]. Changes to that directory and to user UID, if one is given (who then has only the rights that
// the files give), and opens files with O_SYNC and O_DSYNC in many ways; prints of each flags, mode, owner, or errno.
// Static: no preload can reach it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void told(const char *what, int fd)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        printf("%s errno=%d\n", what, errno);
        return;
    }
    int flags = fcntl(fd, F_GETFL);
    printf("%s fd=%d sync=%d others=%o cloexec=%d mode=%o owner=%u:%u size=%ld\n", what, fd,
           (flags & O_DSYNC) != 0, flags & ~O_SYNC, fcntl(fd, F_GETFD), st.st_mode, st.st_uid, st.st_gid,
           (long)st.st_size);
    close(fd);
}

int main(int argc, char **argv)
{
    if (argc < 2 || chdir(argv[1]) != 0)
        return 2;
    unsigned uid = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    gid_t groups[] = {7, 9};
    if (uid && (setgroups(2, groups) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0))
        return 2;
    umask(027);
    told("new", open("new", O_RDWR | O_CREAT | O_SYNC, 0666));
    told("there", open("new", O_WRONLY | O_CREAT | O_EXCL | O_SYNC, 0666));
    told("exclusive", open("exclusive", O_WRONLY | O_CREAT | O_EXCL | O_DSYNC | O_CLOEXEC, 0644));
    told("dsync", open("new", O_WRONLY | O_DSYNC | O_APPEND | O_NONBLOCK));
    FILE *some = fopen("some", "w");
    if (some == NULL || fputs("some", some) < 0 || fclose(some) != 0)
        return 2;
    told("read", open("some", O_RDONLY | O_SYNC));
    told("emptied", open("some", O_WRONLY | O_TRUNC | O_SYNC));
    told("missing", open("missing", O_WRONLY | O_SYNC));
    told("nowhere", open("missing/new", O_WRONLY | O_CREAT | O_SYNC, 0666));
    told("no_directory", open("new/x", O_WRONLY | O_CREAT | O_SYNC, 0666));
    if (symlink("new", "link") != 0 || symlink("far", "dangling") != 0 || mkdir("below", 0755) != 0)
        return 2;
    told("link", open("link", O_WRONLY | O_SYNC));
    told("not_followed", open("link", O_WRONLY | O_SYNC | O_NOFOLLOW));
    told("dangling", open("dangling", O_WRONLY | O_CREAT | O_SYNC, 0666));
    int below = open("below", O_RDONLY | O_DIRECTORY);
    told("up", openat(below, "../new", O_WRONLY | O_SYNC));
    told("in", openat(below, "in", O_WRONLY | O_CREAT | O_SYNC, 0600));
    told("bad_directory", openat(99, "in", O_WRONLY | O_SYNC));
    told("directory", open("below", O_RDONLY | O_SYNC));
    told("device", open("/dev/null", O_WRONLY | O_SYNC));
    told("itself", open("/proc/self/exe", O_RDONLY | O_SYNC));
    told("unreadable", open((const char *)8, O_WRONLY | O_SYNC));
    told("empty", open("", O_WRONLY | O_SYNC));
    told("temporary", open(".", O_WRONLY | O_TMPFILE | O_SYNC, 0600));
    told("only_a_path", open("new", O_PATH | O_SYNC));
    told("forbidden", open("/etc/shadow", O_RDONLY | O_SYNC));
    if (chmod("some", 0) != 0)
        return 2;
    told("own_forbidden", open("some", O_WRONLY | O_SYNC));
    return 0;
}
