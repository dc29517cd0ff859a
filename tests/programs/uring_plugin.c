// build: -shared -fPIC -luring
// A library that dlopen_uring opens: sets up rings through liburing, which nothing else brought in.
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
