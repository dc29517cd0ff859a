#include "call_stack.h"

#include <sys/auxv.h>
#include <sys/uio.h>

#include "prim.h"

/* As far above the stack pointer there is nothing but the first thread's stack. The kernel
 * leaves a gap of 128 MiB below it (arch/x86/mm/mmap.c, MIN_GAP). */
#define SURELY_STACK (1u << 20)

/* How many bytes lie between here and what the kernel put on top of the first thread's
 * stack; 0: this is another stack, or a very deep one. */
static uint64_t bytes_of_first_stack(uint64_t from)
{
	static uint64_t top;
	if (UNLIKELY(!top)) {
		/* Its name, at the end of all (fs/binfmt_elf.c, create_elf_tables). */
		top = getauxval(AT_EXECFN);
	}
	return from < top && top - from < SURELY_STACK ? top - from : 0;
}

/* By the kernel where the end is not known: it stops there, and raises no signal. */
uint64_t refit_copy_stack(void *to, uint64_t from, size_t size)
{
	uint64_t known = bytes_of_first_stack(from);
	if (LIKELY(known)) {
		size_t bytes = known < size ? known : size;
		__builtin_memcpy(to, (const void *)(uintptr_t)from, bytes);
		return bytes;
	}
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
