/* Where live blocks were allocated: of one allocation for each REFIT_HEAP_INTERVAL
 * bytes, on average, the registers and the top of the stack are kept until the
 * block is freed. refit unwinds them later, outside of the program.
 *
 * Each usable byte is chosen with the same probability, by draws from an
 * exponential distribution, so that no pattern of sizes is favoured. An allocation
 * of n usable bytes is kept with the probability 1 - exp(-n / interval), and stands
 * for what was requested of it divided by that.
 */
#ifndef REFIT_HEAP_SAMPLES_H
#define REFIT_HEAP_SAMPLES_H

#include "block.h"
#include "own_counters.h"

/* A block was given out, whose thread has allocated enough. Not 0: it is kept, and the
 * table of blocks is to be told (refit_shadow_mark_sampled). */
int refit_sample(const void *block, struct refit_block sizes);

/* Sizes of a block that was kept. The table of blocks does not have them. */
struct refit_block refit_sample_look(const void *block);

/* The same; the sample is given up. */
struct refit_block refit_sample_take(const void *block);

/* Gives up the sample of a block that is about to be freed, if there is one. Without
 * the table of live blocks nobody else knows. */
void refit_sample_drop(const void *block);

/* No more are taken, nor known. */
void refit_samples_end(void);

/* Those of a process that is dead. */
void refit_samples_release(const struct refit_heap_block *place);

/* In the constructor, with the file. */
void refit_samples_begin(void);

#endif
