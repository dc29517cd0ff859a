// fsyncs argv[1] through io_uring (one IORING_OP_FSYNC), without liburing: set up by syscall(), submitted by an
// instruction of its own, as fio does. Exit 3: no io_uring here.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static char *map(int ring, size_t length, off_t what)
{
    char *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, what);
    return at == MAP_FAILED ? NULL : at;
}

static long enter(int ring)
{
#if defined(__x86_64__)
    long result = SYS_io_uring_enter;
    register long flags __asm__("r10") = IORING_ENTER_GETEVENTS;
    register long mask __asm__("r8") = 0;
    register long size __asm__("r9") = 0;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"((long)ring), "S"(1L), "d"(1L), "r"(flags), "r"(mask), "r"(size)
                     : "rcx", "r11", "memory");
#else
    register long result __asm__("x0") = ring;
    register long submit __asm__("x1") = 1;
    register long complete __asm__("x2") = 1;
    register long flags __asm__("x3") = IORING_ENTER_GETEVENTS;
    register long mask __asm__("x4") = 0;
    register long size __asm__("x5") = 0;
    register long number __asm__("x8") = SYS_io_uring_enter;
    __asm__ volatile("svc #0"
                     : "+r"(result)
                     : "r"(submit), "r"(complete), "r"(flags), "r"(mask), "r"(size), "r"(number)
                     : "memory");
#endif
    return result;
}

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0644) : -1;
    if (fd < 0 || write(fd, "x", 1) != 1) {
        perror("open");
        return 1;
    }
    struct io_uring_params p = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 1, &p);
    if (ring < 0) {
        perror("io_uring_setup");
        return 3;
    }
    char *sq = map(ring, p.sq_off.array + p.sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING);
    char *cq = map(ring, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    struct io_uring_sqe *sqe = (void *)map(ring, p.sq_entries * sizeof *sqe, IORING_OFF_SQES);
    if (sq == NULL || cq == NULL || sqe == NULL) {
        perror("mmap");
        return 1;
    }
    memset(sqe, 0, sizeof *sqe);
    sqe->opcode = IORING_OP_FSYNC;
    sqe->fd = fd;
    *(uint32_t *)(void *)(sq + p.sq_off.array) = 0;
    __atomic_store_n((uint32_t *)(void *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
    if (enter(ring) != 1) {
        perror("io_uring_enter");
        return 1;
    }
    int result = ((struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes))->res;
    printf("%d\n", result);
    return result != 0;
}
