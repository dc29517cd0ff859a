// What every durability call answers on every kind of object, for comparison with another run of itself.
// argv: GROUP DIRECTORY (an empty one to work in). See cell.h for what it prints.
#include "cell.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    void (*print)(void);
} groups[] = {
    {"descriptors", descriptor_cells}, {"ranges", range_cells},
    {"opens", open_cells},             {"odd_opens", odd_open_cells},
    {"writes", write_cells},           {"posix_aio", posix_aio_cells},
    {"kernel_aio", kernel_aio_cells},  {"ring", ring_cells},
    {"cancel", cancel_cells},          {"libaio", libaio_cells},
    {"liburing", liburing_cells},
};

static const struct {
    int number;
    const char *name;
} names[] = {
    {0, "zeroed"},         {KEPT, "kept"},     {EPERM, "EPERM"},       {ENOENT, "ENOENT"},
    {EINTR, "EINTR"},      {EIO, "EIO"},       {ENXIO, "ENXIO"},       {EBADF, "EBADF"},
    {EAGAIN, "EAGAIN"},    {ENOMEM, "ENOMEM"}, {EACCES, "EACCES"},     {EFAULT, "EFAULT"},
    {EBUSY, "EBUSY"},      {EEXIST, "EEXIST"}, {ENODEV, "ENODEV"},     {ENOTDIR, "ENOTDIR"},
    {EISDIR, "EISDIR"},    {EINVAL, "EINVAL"}, {EMFILE, "EMFILE"},     {ETXTBSY, "ETXTBSY"},
    {EFBIG, "EFBIG"},      {ENOSPC, "ENOSPC"}, {ESPIPE, "ESPIPE"},     {EROFS, "EROFS"},
    {EPIPE, "EPIPE"},      {ELOOP, "ELOOP"},   {ENOSYS, "ENOSYS"},     {ENAMETOOLONG, "ENAMETOOLONG"},
    {EXDEV, "EXDEV"},      {E2BIG, "E2BIG"},   {ENOTCONN, "ENOTCONN"}, {EOPNOTSUPP, "EOPNOTSUPP"},
    {ECANCELED, "ECANCELED"},
};

const char *errno_name(int number)
{
    static char text[16];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].number == number)
            return names[i].name;
    }
    snprintf(text, sizeof text, "%d", number);
    return text;
}

const char *result_name(long result)
{
    static char text[24];
    if (result < 0)
        return errno_name((int)-result);
    snprintf(text, sizeof text, "%ld", result);
    return text;
}

void cell(const char *interface, const char *kind, long result, int after, const char *note)
{
    printf("%s %s %ld %s%s%s\n", interface, kind, result, errno_name(after), note[0] ? " " : "", note);
}

void broken(const char *what)
{
    perror(what);
    exit(1);
}

int must(int fd, const char *what)
{
    if (fd < 0)
        broken(what);
    return fd;
}

int main(int argc, char **argv)
{
    if (argc != 3 || chdir(argv[2]) != 0)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    int fd = must(open("file", O_RDWR | O_CREAT | O_EXCL, 0600), "file");
    must((int)write(fd, "x", 1), "write");
    must(close(fd), "close");
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (strcmp(argv[1], groups[i].name) == 0 && groups[i].print) {
            groups[i].print();
            return 0;
        }
    }
    fprintf(stderr, "no cells of group %s here\n", argv[1]);
    return 2;
}
