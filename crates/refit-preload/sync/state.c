#include "state.h"

static struct refit_mark mark_without_wipe;

static struct refit_flushes own_flushes;

struct refit_state refit = {.mark = &mark_without_wipe,
			    .flushes = &own_flushes,
			    .single_threaded = ""};

/* For stubs.S. */
void refit_saw_deepbind(void) __attribute__((visibility("hidden")));

void refit_saw_deepbind(void)
{
	refit_flag(REFIT_IMAGE_DEEPBIND);
}
