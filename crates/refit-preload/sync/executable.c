#include "executable.h"

#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>

#include "prim.h"

void refit_find_executable(char *to, size_t size)
{
	long n = prim_syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", to,
			      size - 1);
	if (n > 0) {
		to[n] = '\0';
		return;
	}
	to[0] = '\0';
	const char *name = (const char *)getauxval(AT_EXECFN);
	if (!name) {
		return;
	}
	char magic[4] = "";
	long fd = prim_syscall(SYS_openat, AT_FDCWD, name,
			       O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	if (fd >= 0) {
		prim_syscall(SYS_read, fd, magic, 4, 0);
		prim_syscall(SYS_close, fd, 0, 0, 0);
	}
	if (magic[0] == 0x7f && magic[1] == 'E') {
		prim_copy(to, name, size);
	}
}

struct search {
	uintptr_t address;
	const char *executable;
	char *to;
	size_t size;
	int is_program;
};

static int names(struct dl_phdr_info *object, size_t size, void *argument)
{
	(void)size;
	struct search *search = argument;
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t start = object->dlpi_addr + part->p_vaddr;
		if (part->p_type == PT_LOAD && search->address >= start &&
		    search->address - start < part->p_memsz) {
			/* The program itself has no name here. */
			search->is_program = !object->dlpi_name[0];
			const char *name = search->is_program
						   ? search->executable
						   : object->dlpi_name;
			prim_copy(search->to, name, search->size);
			return 1;
		}
	}
	return 0;
}

/* Not by dladdr, which reads every symbol of the C library: 0.1 ms for each
 * program that is started. */
int refit_name_object(const void *address, const char *executable, char *to,
		      size_t size)
{
	struct search search = {(uintptr_t)address, executable, to, size, 0};
	if (address) {
		dl_iterate_phdr(names, &search);
	}
	return search.is_program;
}
