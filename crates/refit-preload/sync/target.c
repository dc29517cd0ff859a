/* What an executable file is: read from its ELF header, its mode and its
 * capabilities, as the kernel (binfmt_elf.c, binfmt_script.c) and ld.so would.
 *
 * Used by the preload before an exec and by refit itself for the first program,
 * so that both always agree. No allocation, no calls into the C library.
 */
#include "target.h"

#include <alloca.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "prim.h"

#define ST_NOSUID_FLAG 0x2 /* statfs(2), ST_NOSUID */
#define SCRIPT_DEPTH 5   /* binfmt_script: at most five interpreters */
#define HEADERS 32       /* program headers that are looked at */
#define DYNAMIC 128      /* dynamic entries that are looked at */
#define NEEDED 4         /* a sanitizer runtime is among the first libraries */
#define NOTES 256        /* bytes of notes that are looked at */

static long read_at(int fd, void *to, size_t size, uint64_t offset)
{
	return prim_syscall(SYS_pread64, fd, to, size, offset);
}

static int is_sanitizer(const char *name)
{
	static const char *const runtimes[] = {"libasan.so", "libtsan.so",
					       "libhwasan.so", "liblsan.so",
					       "libclang_rt.asan"};
	for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++) {
		if (prim_after(name, runtimes[i])) {
			return 1;
		}
	}
	return 0;
}

static uint64_t file_offset(const Elf64_Phdr *headers, unsigned count,
			    uint64_t address)
{
	for (unsigned i = 0; i < count; i++) {
		const Elf64_Phdr *h = &headers[i];
		if (h->p_type == PT_LOAD && address >= h->p_vaddr &&
		    address - h->p_vaddr < h->p_filesz) {
			return address - h->p_vaddr + h->p_offset;
		}
	}
	return 0;
}

/* AddressSanitizer and its relatives refuse to start when another library was
 * loaded before them (google/sanitizers issue 796). */
__attribute__((noinline)) static int needs_sanitizer(int fd, const Elf64_Phdr *headers, unsigned count,
			   const Elf64_Phdr *dynamic)
{
	size_t size = dynamic->p_filesz;
	if (size > DYNAMIC * sizeof(Elf64_Dyn)) {
		size = DYNAMIC * sizeof(Elf64_Dyn);
	}
	/* As many as there are, given back at the return. */
	Elf64_Dyn *entries = alloca(size + sizeof *entries);
	long got = read_at(fd, entries, size, dynamic->p_offset);
	if (got < 0) {
		return 0;
	}
	uint64_t strings = 0;
	size_t n = (size_t)got / sizeof *entries;
	for (size_t i = 0; i < n && entries[i].d_tag != DT_NULL; i++) {
		if (entries[i].d_tag == DT_STRTAB) {
			strings = file_offset(headers, count,
					      entries[i].d_un.d_ptr);
		}
	}
	unsigned looked = 0;
	for (size_t i = 0; strings && i < n && entries[i].d_tag != DT_NULL &&
			   looked < NEEDED;
	     i++) {
		char name[32] = "";
		if (entries[i].d_tag != DT_NEEDED) {
			continue;
		}
		looked++;
		if (read_at(fd, name, sizeof name - 1,
			    strings + entries[i].d_un.d_val) > 0 &&
		    is_sanitizer(name)) {
			return 1;
		}
	}
	return 0;
}

/* The Go linker leaves its build id in a note of this name, whether or not the
 * C library is linked too (cmd/link/internal/ld/elf.go). */
static int is_go(int fd, const Elf64_Phdr *notes)
{
	union {
		Elf64_Nhdr header;
		char bytes[NOTES];
	} room;
	size_t size = notes->p_filesz < NOTES ? notes->p_filesz : NOTES;
	long got = read_at(fd, room.bytes, size, notes->p_offset);
	size_t at = 0;
	while (got > 0 && at + sizeof(Elf64_Nhdr) + 4 <= (size_t)got) {
		const Elf64_Nhdr *note = (const void *)(room.bytes + at);
		const char *name = room.bytes + at + sizeof *note;
		if (note->n_namesz == 4 && name[0] == 'G' && name[1] == 'o' &&
		    name[2] == '\0') {
			return 1;
		}
		if (note->n_namesz > NOTES || note->n_descsz > NOTES) {
			return 0;
		}
		size_t align = notes->p_align == 8 ? 8 : 4;
		at += sizeof *note + ((note->n_namesz + 3u) & ~3u) +
		      note->n_descsz;
		at = (at + align - 1) / align * align;
	}
	return 0;
}

static void look_elf64(int fd, const Elf64_Ehdr *elf, struct refit_target *out)
{
	unsigned count = elf->e_phnum < HEADERS ? elf->e_phnum : HEADERS;
	/* As many as there are: a thread's stack may be small. */
	Elf64_Phdr *headers = alloca((count + 1) * sizeof *headers);
	long got = read_at(fd, headers, count * sizeof *headers, elf->e_phoff);
	if (elf->e_phentsize != sizeof *headers || got < 0) {
		return;
	}
	count = (unsigned)((size_t)got / sizeof *headers);
	/* A static-pie has PT_DYNAMIC but no PT_INTERP: only the interpreter
	 * decides whether there is an ld.so, which reads LD_PRELOAD. */
	out->kind = REFIT_TARGET_STATIC;
	for (unsigned i = 0; i < count; i++) {
		const Elf64_Phdr *h = &headers[i];
		if (h->p_type == PT_INTERP) {
			size_t size = sizeof out->interpreter - 1;
			if (h->p_filesz < size) {
				size = h->p_filesz;
			}
			if (read_at(fd, out->interpreter, size, h->p_offset) < 0) {
				out->kind = REFIT_TARGET_UNKNOWN;
				return;
			}
			const char *name = prim_basename(out->interpreter);
			out->kind = prim_equal(name, ARCH_GLIBC_LOADER)
					    ? REFIT_TARGET_GLIBC
				    : prim_equal(name, ARCH_MUSL_LOADER)
					    ? REFIT_TARGET_MUSL
					    : REFIT_TARGET_OTHER_LIBC;
		}
	}
	for (unsigned i = 0; i < count; i++) {
		if (headers[i].p_type == PT_NOTE && is_go(fd, &headers[i])) {
			out->own_calls = 1;
		}
		if (headers[i].p_type == PT_DYNAMIC) {
			out->sanitizer = (uint32_t)needs_sanitizer(
				fd, headers, count, &headers[i]);
		}
	}
}

/* ld.so ignores preloads when AT_SECURE is set: the ids differ after the exec,
 * or a user gains capabilities (ld.so(8), cap_bprm_creds_from_file). */
static uint32_t secure_reason(int fd, const struct stat *st)
{
	uint32_t uid = (uint32_t)prim_syscall(SYS_getuid, 0, 0, 0, 0);
	uint32_t gid = (uint32_t)prim_syscall(SYS_getgid, 0, 0, 0, 0);
	uint32_t euid = (uint32_t)prim_syscall(SYS_geteuid, 0, 0, 0, 0);
	uint32_t egid = (uint32_t)prim_syscall(SYS_getegid, 0, 0, 0, 0);
	struct statfs fs;
	int nosuid = prim_syscall(SYS_fstatfs, fd, &fs, 0, 0) == 0 &&
		     (fs.f_flags & ST_NOSUID_FLAG) != 0;
	int gains = !nosuid && (st->st_mode & (S_ISUID | S_ISGID)) != 0 &&
		    prim_syscall6(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0,
				  0) != 1;
	if (gains && (st->st_mode & S_ISUID)) {
		euid = st->st_uid;
	}
	if (gains && (st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP)) {
		egid = st->st_gid;
	}
	if (euid != uid) {
		return REFIT_REASON_SETUID;
	}
	if (egid != gid) {
		return REFIT_REASON_SETGID;
	}
	char capabilities[32];
	if (uid != 0 && !nosuid &&
	    prim_syscall(SYS_fgetxattr, fd, "security.capability",
			 capabilities, sizeof capabilities) > 0) {
		return REFIT_REASON_FILE_CAPABILITIES;
	}
	return REFIT_REASON_REACHED;
}

static uint32_t kind_reason(const struct refit_target *target)
{
	switch (target->kind) {
	case REFIT_TARGET_STATIC:
		return REFIT_REASON_STATIC;
	case REFIT_TARGET_OTHER_ARCHITECTURE:
		return REFIT_REASON_OTHER_ARCHITECTURE;
	case REFIT_TARGET_OTHER_LIBC:
		return REFIT_REASON_OTHER_LIBC;
	default:
		return target->sanitizer ? REFIT_REASON_SANITIZER
					 : REFIT_REASON_REACHED;
	}
}

/* Fills next with the interpreter of a #! line; 0 when the file has none. */
static int shebang(const char *head, long size, char *next, size_t room)
{
	if (size < 3 || head[0] != '#' || head[1] != '!') {
		return 0;
	}
	long at = 2;
	while (at < size && (head[at] == ' ' || head[at] == '\t')) {
		at++;
	}
	size_t n = 0;
	while (at < size && n + 1 < room && head[at] != ' ' &&
	       head[at] != '\t' && head[at] != '\n' && head[at] != '\0') {
		next[n++] = head[at++];
	}
	next[n] = '\0';
	return n > 0;
}

static int look_once(int fd, struct refit_target *out, char *next, size_t room)
{
	union {
		Elf64_Ehdr elf;
		char bytes[256];
	} head = {0};
	long size = read_at(fd, head.bytes, sizeof head.bytes, 0);
	if (shebang(head.bytes, size, next, room)) {
		return 1;
	}
	if (size < (long)sizeof head.elf || head.bytes[0] != ELFMAG0 ||
	    head.bytes[1] != ELFMAG1 || head.bytes[2] != ELFMAG2 ||
	    head.bytes[3] != ELFMAG3) {
		/* Neither ELF nor #!: execvp and shells pass it to /bin/sh. */
		return 0;
	}
	if (head.elf.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.elf.e_machine != ARCH_MACHINE) {
		out->kind = REFIT_TARGET_OTHER_ARCHITECTURE;
		return 0;
	}
	look_elf64(fd, &head.elf, out);
	return 0;
}

static void look_open(int fd, struct refit_target *out, char *next, size_t room)
{
	struct stat st;
	next[0] = '\0';
	if (prim_syscall(SYS_fstat, fd, &st, 0, 0) < 0 || !S_ISREG(st.st_mode)) {
		return;
	}
	out->executable = (st.st_mode & 0111) != 0;
	if (look_once(fd, out, next, room)) {
		/* The kernel would not come to the interpreter. */
		next[0] = out->executable ? next[0] : '\0';
		return;
	}
	if (out->kind == REFIT_TARGET_UNKNOWN) {
		return;
	}
	/* Of several reasons the strongest is named: a static or foreign file
	 * first, then secure execution. */
	out->reason = kind_reason(out);
	if (out->reason == REFIT_REASON_REACHED ||
	    out->reason == REFIT_REASON_SANITIZER) {
		uint32_t secure = secure_reason(fd, &st);
		if (secure != REFIT_REASON_REACHED) {
			out->reason = secure;
		}
	}
}

/* An open alone may wake who waits at a FIFO's other end, or start a watchdog:
 * the kernel opens nothing but regular files for an exec (may_open in
 * fs/namei.c), and so do we. What may be executed and not be read fails here,
 * after its mode was seen. */
static long open_regular(int dirfd, const char *path, struct refit_target *out)
{
	struct stat st;
	out->executable = 0;
	if (prim_syscall(SYS_newfstatat, dirfd, path, &st, 0) < 0 ||
	    !S_ISREG(st.st_mode)) {
		return -1;
	}
	out->executable = (st.st_mode & 0111) != 0;
	return prim_syscall(SYS_openat, dirfd, path,
			    O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
}

static void follow_scripts(char *next, struct refit_target *out)
{
	for (int depth = 0; depth < SCRIPT_DEPTH && next[0]; depth++) {
		out->script = 1;
		prim_copy(out->path, next, sizeof out->path);
		long fd = open_regular(AT_FDCWD, out->path, out);
		if (fd < 0) {
			return;
		}
		look_open((int)fd, out, next, sizeof out->path);
		prim_syscall(SYS_close, fd, 0, 0, 0);
	}
}

static void clear(struct refit_target *out)
{
	out->kind = REFIT_TARGET_UNKNOWN;
	out->reason = REFIT_REASON_REACHED;
	out->script = 0;
	out->sanitizer = 0;
	out->executable = 0;
	out->own_calls = 0;
	out->path[0] = '\0';
	for (size_t i = 0; i < sizeof out->interpreter; i++) {
		out->interpreter[i] = '\0';
	}
}

void refit_target_look_fd(int fd, struct refit_target *out)
{
	char next[sizeof out->path];
	clear(out);
	look_open(fd, out, next, sizeof next);
	follow_scripts(next, out);
}

void refit_target_look(int dirfd, const char *path, struct refit_target *out)
{
	char next[sizeof out->path];
	clear(out);
	prim_copy(out->path, path, sizeof out->path);
	long fd = open_regular(dirfd, path, out);
	if (fd < 0) {
		return;
	}
	look_open((int)fd, out, next, sizeof next);
	prim_syscall(SYS_close, fd, 0, 0, 0);
	follow_scripts(next, out);
}

void refit_target_only_name(const char *path, struct refit_target *out)
{
	clear(out);
	prim_copy(out->path, path, sizeof out->path);
}
