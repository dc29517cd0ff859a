// argv: DIRECTORY. Mounts a FUSE file system on the directory, in mounts of its own, whose server answers no read. A
// child calls openat2 with its flags in a page of a file there. This process meanwhile calls fsync on a file of its
// own 100 times. Ends with 77 where FUSE is not allowed, and with 3 where the child's call ended before those.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

static volatile int *was_read;

static void reply(int fuse, const struct fuse_in_header *in, int error, const void *body, size_t size)
{
    struct fuse_out_header head = {(uint32_t)(sizeof head + size), error, in->unique};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)body, size}};
    if (writev(fuse, parts, 2) < 0)
        _exit(1);
}

static struct fuse_attr attributes(int is_root)
{
    return (struct fuse_attr){
        .ino = is_root ? 1 : 2, .size = PAGE, .mode = is_root ? S_IFDIR | 0755 : S_IFREG | 0644, .nlink = 1};
}

static void serve(int fuse)
{
    static char request[1 << 18];
    const struct fuse_in_header *in = (void *)request;
    while (read(fuse, request, sizeof request) > 0) {
        struct fuse_init_out init = {.major = 7, .minor = 31, .max_write = PAGE};
        struct fuse_entry_out entry = {.nodeid = 2, .entry_valid = 100, .attr_valid = 100, .attr = attributes(0)};
        struct fuse_attr_out attr = {.attr_valid = 100, .attr = attributes(in->nodeid == 1)};
        struct fuse_open_out opened = {.fh = 1};
        switch (in->opcode) {
        case FUSE_INIT:
            reply(fuse, in, 0, &init, sizeof init);
            break;
        case FUSE_LOOKUP:
            reply(fuse, in, 0, &entry, sizeof entry);
            break;
        case FUSE_GETATTR:
            reply(fuse, in, 0, &attr, sizeof attr);
            break;
        case FUSE_OPEN:
            reply(fuse, in, 0, &opened, sizeof opened);
            break;
        case FUSE_READ:
            *was_read = 1;
            break;
        case FUSE_FORGET:
        case FUSE_INTERRUPT:
            break;
        default:
            reply(fuse, in, -38, NULL, 0);
        }
    }
}

int main(int argc, char **argv)
{
    char options[100], name[4096];
    if (argc != 2)
        return 2;
    was_read = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int own = open("own", O_WRONLY | O_CREAT, 0600), fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fuse < 0 || unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return 77;
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
    if (mount("stuck", argv[1], "fuse", MS_NOSUID | MS_NODEV, options) != 0)
        return 77;
    pid_t server = fork();
    if (server == 0) {
        serve(fuse);
        _exit(0);
    }
    close(fuse);
    snprintf(name, sizeof name, "%s/page", argv[1]);
    int fd = open(name, O_RDONLY);
    char *page = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        syscall(SYS_openat2, AT_FDCWD, "nothing", page, 24);
        _exit(0);
    }
    while (!*was_read)
        sched_yield();
    for (int i = 0; i < 100; i++)
        fsync(own);
    int waits = waitpid(child, NULL, WNOHANG) == 0;
    kill(child, SIGKILL);
    kill(server, SIGKILL);
    return waits ? 0 : 3;
}
