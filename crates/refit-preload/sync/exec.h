/* The system calls that exec, by number: -errno on failure. */
#ifndef REFIT_EXEC_H
#define REFIT_EXEC_H

long refit_execve(const char *path, char *const *argv, char *const *envp);

long refit_execveat(int dirfd, const char *path, char *const *argv,
		    char *const *envp, int flags);

#endif
