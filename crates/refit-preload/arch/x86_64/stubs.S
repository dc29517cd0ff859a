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
	.type	syscall, @function
syscall:
	.cfi_startproc
#define OURS(nr) cmpq $nr, %rdi; je 1f;
#include "own_numbers.h"
	movq	refit_next_syscall(%rip), %rax
	testq	%rax, %rax
	je	1f
	jmp	*%rax
	/* The seventh argument is on the stack here as it is for C. */
1:	jmp	refit_syscall
	.cfi_endproc
	.size	syscall, .-syscall

	.globl	dlopen
	.type	dlopen, @function
dlopen:
	.cfi_startproc
	testl	$8, %esi
	je	1f
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	refit_saw_deepbind
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
1:	movq	refit_next_dlopen(%rip), %rax
	testq	%rax, %rax
	je	2f
	jmp	*%rax
	/* Called before our constructor ran. */
2:	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	refit_find_dlopen
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*%rax
	.cfi_endproc
	.size	dlopen, .-dlopen

	.section .note.GNU-stack, "", @progbits
