/* Answers each fsync of a program with 0, by a seccomp user notification and nothing else: what such an answer costs
 * at the least.
 *
 * bare_notification PROGRAM ARGUMENTS...
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

static int add_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsync, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof code / sizeof *code, code};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
}

int main(int argc, char **argv)
{
	int ends[2], listener;
	if (argc < 2 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return 2;
	pid_t program = fork();
	if (program == 0) {
		listener = add_filter();
		/* It is closed by the exec, which waits until the parent has it. */
		if (listener < 0 || write(ends[1], &listener, sizeof listener) < 0 || read(ends[1], &listener, 1) < 0)
			_exit(3);
		execv(argv[1], argv + 1);
		_exit(4);
	}
	close(ends[1]);
	int theirs = -1;
	if (read(ends[0], &theirs, sizeof theirs) != sizeof theirs)
		return 3;
	int process = (int)syscall(SYS_pidfd_open, program, 0);
	listener = (int)syscall(SYS_pidfd_getfd, process, theirs, 0);
	if (listener < 0 || write(ends[0], "", 1) != 1)
		return 3;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, 1UL /* SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP */);
	struct seccomp_notif call;
	for (;;) {
		/* Until Linux 6.11 RECV waits for ever once the program has ended. */
		struct pollfd events = {.fd = listener, .events = POLLIN};
		if (poll(&events, 1, -1) < 0 || !(events.revents & POLLIN))
			break;
		memset(&call, 0, sizeof call);
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
			continue;
		struct seccomp_notif_resp answer = {.id = call.id};
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	int status = 0;
	waitpid(program, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
