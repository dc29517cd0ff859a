// The same through libaio.
#include "cell.h"

#include <libaio.h>
#include <stdio.h>

static void submitted(const char *interface, const char *kind, io_context_t context, int fd,
                      void (*prepare)(struct iocb *, int))
{
    struct iocb request, *list[] = {&request};
    struct io_event event;
    char note[32] = "";
    prepare(&request, fd);
    errno = KEPT;
    int result = io_submit(context, 1, list), after = errno;
    if (result == 1) {
        if (io_getevents(context, 1, 1, &event, NULL) != 1)
            broken("io_getevents");
        snprintf(note, sizeof note, "completed=%s", result_name((long)event.res));
    }
    cell(interface, kind, result, after, note);
}

void libaio_cells(void)
{
    io_context_t context = NULL;
    size_t count;
    int error = io_setup(4, &context);
    if (error != 0) {
        printf("# no kernel aio here: %s\n", errno_name(-error));
        return;
    }
    const struct kind *kinds = all_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        submitted("libaio_fsync", kinds[i].name, context, kinds[i].fd, io_prep_fsync);
        submitted("libaio_fdsync", kinds[i].name, context, kinds[i].fd, io_prep_fdsync);
    }
    io_destroy(context);
}
