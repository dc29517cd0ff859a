/* Two functions that must not have a frame of their own.
 *
 * syscall: it has any number of arguments, and a vfork made through it has to
 * return on the caller's frame. Numbers that are not ours are passed on.
 *
 * dlopen: the C library looks at its caller's RUNPATH, so the return address has
 * to stay the program's. RTLD_DEEPBIND (8) is recorded before, because it hides a
 * preloaded malloc from the library that is opened.
 */
#include <sys/syscall.h>

	.text

	.globl	syscall
	.type	syscall, %function
syscall:
	.cfi_startproc
#define OURS(nr) cmp x0, nr; b.eq 1f;
#include "own_numbers.h"
	adrp	x16, refit_next_syscall
	ldr	x16, [x16, :lo12:refit_next_syscall]
	cbz	x16, 1f
	br	x16
	/* All seven arguments are in registers here as they are for C. */
1:	b	refit_syscall
	.cfi_endproc
	.size	syscall, .-syscall

	/* Calls a function of ours with both arguments of dlopen kept; its result
	 * is in x16. */
	.macro	keeping function
	stp	x29, x30, [sp, #-32]!
	.cfi_adjust_cfa_offset 32
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	stp	x0, x1, [sp, #16]
	mov	x29, sp
	bl	\function
	mov	x16, x0
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #32
	.cfi_adjust_cfa_offset -32
	.cfi_restore x29
	.cfi_restore x30
	.endm

	.globl	dlopen
	.type	dlopen, %function
dlopen:
	.cfi_startproc
	tbz	w1, #3, 1f
	keeping	refit_saw_deepbind
1:	adrp	x16, refit_next_dlopen
	ldr	x16, [x16, :lo12:refit_next_dlopen]
	cbz	x16, 2f
	br	x16
	/* Called before our constructor ran. */
2:	keeping	refit_find_dlopen
	br	x16
	.cfi_endproc
	.size	dlopen, .-dlopen

	.section .note.GNU-stack, "", %progbits
