#ifndef REFIT_AIO_H
#define REFIT_AIO_H

struct iocb;

/* io_submit by number: -errno on failure. Swaps syncs, and puts the program's
 * blocks back before it returns. */
long refit_io_submit(void *context, long count, struct iocb **blocks);

#endif
