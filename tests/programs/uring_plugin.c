// build: -shared -fPIC -luring
// A library that dlopen_uring opens: uses liburing, which nothing else loads.
#include <liburing.h>

int set_up_rings(void);
int set_up_rings(void)
{
    struct io_uring plain, with_params;
    struct io_uring_params params = {0};
    int result = io_uring_queue_init(4, &plain, 0);
    if (result == 0)
        result = io_uring_queue_init_params(4, &with_params, &params);
    return result;
}

// Submits n operations that do nothing, one at a time.
int submit(int n);
int submit(int n)
{
    struct io_uring ring;
    int result = io_uring_queue_init(4, &ring, 0);
    while (result == 0 && n-- > 0) {
        io_uring_prep_nop(io_uring_get_sqe(&ring));
        struct io_uring_cqe *done;
        result = io_uring_submit(&ring) == 1 ? io_uring_wait_cqe(&ring, &done) : -1;
        if (result == 0)
            io_uring_cqe_seen(&ring, done);
    }
    return result;
}
