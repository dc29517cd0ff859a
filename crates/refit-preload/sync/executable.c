#include "executable.h"

#include <fcntl.h>
#include <sys/auxv.h>

#include "symbol.h"

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

int refit_name_object(const struct link_map *object, const char *executable,
		      char *to, size_t size)
{
	/* The program itself may have no name there. */
	int is_program = object == refit_objects();
	if (object) {
		prim_copy(to, is_program ? executable : object->l_name, size);
	}
	return is_program;
}
