// A FUSE file system with one file, `page`, of one page, whose server answers no read.
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096

static volatile int *was_read;
static pid_t server;

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

// Until the other end of the pipe is closed.
static void serve(int fuse, int lives)
{
    static char request[1 << 18];
    const struct fuse_in_header *in = (void *)request;
    struct pollfd ready[] = {{.fd = fuse, .events = POLLIN}, {.fd = lives}};
    while (poll(ready, 2, -1) > 0 && !ready[1].revents && read(fuse, request, sizeof request) > 0) {
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

// Mounts it on the directory, in mounts of the caller's own; the file, or -1 where FUSE is not allowed. The server ends
// with the caller.
static int stuck_file(const char *directory)
{
    char options[100], name[4096];
    int lives[2];
    was_read = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fuse < 0 || unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return -1;
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
    if (mount("stuck", directory, "fuse", MS_NOSUID | MS_NODEV, options) != 0)
        return -1;
    if (pipe2(lives, O_CLOEXEC) != 0)
        return -1;
    server = fork();
    if (server == 0) {
        close(lives[1]);
        serve(fuse, lives[0]);
        _exit(0);
    }
    close(fuse);
    snprintf(name, sizeof name, "%s/page", directory);
    return open(name, O_RDONLY);
}
