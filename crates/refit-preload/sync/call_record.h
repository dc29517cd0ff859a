/* What is recorded of a call besides its count: where it waited, and with
 * --trace-sync the call itself. */
#ifndef REFIT_CALL_RECORD_H
#define REFIT_CALL_RECORD_H

#include "own_seccomp.h"

struct refit_call_record {
	enum refit_call call;
	enum refit_answer answer;
	int fd; /* -1: none */
	long result;
	uint64_t began_ns;
	uint64_t ended_ns;
};

static inline int refit_traces(void)
{
	return refit.traces && !refit_beneath_own_seccomp();
}

/* Adds the wait to the file's directory, and traces the call. */
void refit_record(const struct refit_call_record *record);

#endif
