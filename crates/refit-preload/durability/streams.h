/* Streams of the C library, which writes to files by calls of its own. */
#ifndef REFIT_STREAMS_H
#define REFIT_STREAMS_H

/* Whether bytes wait in the buffer of a stream that writes to this descriptor. */
int refit_waits_in_stream(int fd);

/* The descriptor is about to be closed by itself: no stream has it any more. */
void refit_forget_stream(int fd);

#endif
