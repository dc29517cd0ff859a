/* Where prim_clock_ns reads the time. */
#ifndef REFIT_CLOCK_H
#define REFIT_CLOCK_H

/* Looks for the kernel's function. For a constructor. */
void refit_find_clock(void);

#endif
