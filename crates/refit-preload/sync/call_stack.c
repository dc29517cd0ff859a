#include "call_stack.h"

#include <sys/uio.h>

#include "prim.h"

uint64_t refit_copy_stack(void *to, uint64_t from, size_t size)
{
	struct iovec local = {to, size};
	struct iovec remote = {(void *)(uintptr_t)from, size};
	long pid = prim_syscall(SYS_getpid, 0, 0, 0, 0);
	long copied = prim_syscall6(SYS_process_vm_readv, pid, (long)&local, 1,
				    (long)&remote, 1, 0);
	return copied > 0 ? (uint64_t)copied : 0;
}

/* Each line is appended to those that are kept, and the next one overwrites it if it is
 * not executable. */
uint64_t refit_copy_code_lines(long fd, char *to, uint64_t size)
{
	char chunk[1024];
	uint64_t kept = 0, at = 0;
	long got;
	while ((got = prim_syscall(SYS_read, fd, chunk, sizeof chunk, 0)) > 0) {
		for (long i = 0; i < got; i++) {
			if (at == size) {
				return kept;
			}
			to[at++] = chunk[i];
			if (chunk[i] != '\n') {
				continue;
			}
			/* begin-end r-xp ... */
			uint64_t space = kept;
			while (to[space] != ' ' && space + 4 < at) {
				space++;
			}
			if (to[space + 3] == 'x') {
				kept = at;
			}
			at = kept;
		}
	}
	return kept;
}
