/* Beneath a limit of the address space the program comes first. */
#ifndef REFIT_HEAP_GIVE_UP_H
#define REFIT_HEAP_GIVE_UP_H

#include <stddef.h>

/* An allocation of so many bytes has failed. Not 0: the address space is limited, and all
 * that is mapped was given back: it may succeed now. Counting has ended. 0 too where
 * other threads may be using it. */
int refit_heap_give_up(size_t size);

#endif
