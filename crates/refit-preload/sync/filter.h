/* The seccomp filter of the policy: it answers syncs with 0 where the preload
 * cannot. It costs every system call of the task that has it, and of all that
 * it starts, so it goes only beneath what the preload cannot reach.
 *
 * It belongs to a task (a thread, or a vfork child), which keeps it: also after
 * an exec that failed. Without CAP_SYS_ADMIN or no_new_privs the kernel refuses
 * it (seccomp(2)), and everything stays as it was. */
#ifndef REFIT_FILTER_H
#define REFIT_FILTER_H

/* Whether the policy has one, and the program none of its own, which might kill
 * for a call that asks for it. */
int refit_wants_filter(void);

/* Puts it beneath the calling task, unless it is there. Returns whether it is
 * there now. Async-signal-safe. */
int refit_put_filter(void);

/* Before the calling process gives up the right to a filter: puts it beneath
 * all its threads, since what they start may need it. */
void refit_put_filter_while_allowed(void);

#endif
