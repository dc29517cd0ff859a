/* A Postfix lookup table as an mruby script: a server for socketmap_table(5) on 127.0.0.1.
 *
 * The script runs in a process of its own, whose memory and time are limited, and which starts anew from time to time;
 * so a script that loops, eats memory or crashes is a lookup that failed (TEMP: Postfix tries again later), and never a
 * table that says "not found", and never the end of the server.
 *
 * One lookup at a time: a script that needs long makes all askers wait, each for the time limit at most. */
#define _GNU_SOURCE
#include "mapd.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CLIENTS = 500 };

static struct limits limits = { 2000, 32 << 20, 100000 };
static const char *table, *script;

static pid_t worker;     /* 0: none runs */
static int channel = -1; /* to it */

static void forget_worker(void)
{
	close(channel);
	worker = 0;
	channel = -1;
}

static void end_worker(int signal)
{
	if (signal != 0)
		kill(worker, signal);
	while (waitpid(worker, NULL, 0) < 0 && errno == EINTR)
		;
	forget_worker();
}

/* One message of the worker within the time limit: its length, 0 when the worker has ended, -1 when it was too slow. */
static ssize_t answer(char *message, size_t size)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	long end = now.tv_sec * 1000 + now.tv_nsec / 1000000 + limits.time_ms;
	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		long left = end - (now.tv_sec * 1000 + now.tv_nsec / 1000000);
		struct pollfd wait = { .fd = channel, .events = POLLIN };
		int ready = poll(&wait, 1, left > 0 ? (int)left : 0);
		if (ready == 0)
			return -1;
		if (ready > 0) {
			ssize_t length = recv(channel, message, size, 0);
			return length > 0 ? length : 0;
		}
	}
}

/* Starts the worker: nothing, or why the script cannot be used. */
static const char *start_worker(void)
{
	static char message[512];
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
		return "TEMP no socket for the script's process";
	pid_t server = getpid();
	worker = fork();
	if (worker == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != server)
			_exit(1);
		/* Its copies would keep the server's connections open. */
		dup2(pair[1], 3);
		close_range(4, ~0U, 0);
		work(3, script, &limits);
	}
	close(pair[1]);
	channel = pair[0];
	if (worker < 0) {
		forget_worker();
		return "TEMP no process for the script";
	}
	ssize_t length = answer(message, sizeof message - 1);
	if (length == 1)
		return NULL;
	end_worker(SIGKILL);
	if (length < 0)
		return "TEMP the script takes too long to load";
	if (length == 0)
		return "TEMP the script ends its process while it is loaded";
	message[length] = '\0';
	return message + 1;
}

/* The reply to a lookup, and its length. */
static const char *look_up(const char *key, size_t length, size_t *reply_length)
{
	static char message[1 + LONGEST_REPLY];
	/* One that ended since the last lookup is nobody's failure. */
	if (worker != 0 && waitpid(worker, NULL, WNOHANG) == worker)
		forget_worker();
	const char *failure = worker == 0 ? start_worker() : NULL;
	if (failure == NULL) {
		send(channel, key, length, MSG_NOSIGNAL);
		ssize_t got = answer(message, sizeof message);
		if (got > 0) {
			if (message[0] == LAST)
				end_worker(0);
			*reply_length = (size_t)got - 1;
			return message + 1;
		}
		failure = got < 0 ? "TEMP the script took too long" : "TEMP the script ended its process";
		end_worker(SIGKILL);
	}
	*reply_length = strlen(failure);
	return failure;
}

struct client {
	int fd;
	size_t filled;
	char buffer[16 + LONGEST_KEY + 256];
};

static struct client clients[MOST_CLIENTS];
static int client_count;

static bool reply(struct client *client, const char *text, size_t length)
{
	static char out[16 + LONGEST_REPLY];
	int head = snprintf(out, 16, "%zu:", length);
	memcpy(out + head, text, length);
	out[(size_t)head + length] = ',';
	size_t whole = (size_t)head + length + 1;
	/* The socket has a time limit: a client that does not read is given up. */
	return send(client->fd, out, whole, MSG_NOSIGNAL) == (ssize_t)whole;
}

/* A request is `NAME KEY`. */
static bool serve(struct client *client, const char *request, size_t length)
{
	const char *space = memchr(request, ' ', length);
	size_t name = space == NULL ? 0 : (size_t)(space - request);
	const char *text;
	size_t key = length - name - 1;
	if (space == NULL || name != strlen(table) || memcmp(request, table, name) != 0)
		text = "PERM there is no table of this name";
	else if (key == 0 || key > LONGEST_KEY || memchr(space + 1, 0, key) != NULL)
		text = "PERM a key is 1 to 8192 bytes without NUL";
	else {
		text = look_up(space + 1, key, &length);
		return reply(client, text, length);
	}
	return reply(client, text, strlen(text));
}

/* Reads what has come, and answers every request that is complete. False: the connection is over. */
static bool attend(struct client *client)
{
	ssize_t got = recv(client->fd, client->buffer + client->filled, sizeof client->buffer - client->filled, 0);
	if (got <= 0)
		return got < 0 && (errno == EINTR || errno == EAGAIN);
	client->filled += (size_t)got;
	for (;;) {
		/* LENGTH:NAME KEY, */
		char *buffer = client->buffer;
		size_t digits = 0, length = 0;
		while (digits < client->filled && digits < 6 && buffer[digits] >= '0' && buffer[digits] <= '9')
			length = length * 10 + (size_t)(buffer[digits++] - '0');
		if (digits == client->filled && digits < 6)
			return true;
		if (digits == 0 || buffer[digits] != ':' || digits + length + 2 > sizeof client->buffer)
			return false;
		size_t whole = digits + 1 + length + 1;
		if (client->filled < whole)
			return true;
		if (buffer[whole - 1] != ',' || !serve(client, buffer + digits + 1, length))
			return false;
		client->filled -= whole;
		memmove(buffer, buffer + whole, client->filled);
	}
}

static void welcome(int listener)
{
	struct timeval timeout = { .tv_sec = 1 };
	int fd = accept(listener, NULL, NULL);
	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
	clients[client_count].fd = fd;
	clients[client_count++].filled = 0;
}

static int listen_on(const char *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(port, NULL, 10)) };
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 128) != 0)
		err(1, "127.0.0.1:%s", port);
	return fd;
}

/* A script has no business with root's files. */
static void drop_root(void)
{
	if (geteuid() != 0)
		return;
	struct passwd *nobody = getpwnam("nobody");
	if (nobody == NULL || setgroups(0, NULL) != 0 || setgid(nobody->pw_gid) != 0 || setuid(nobody->pw_uid) != 0)
		err(1, "cannot become nobody");
}

static long number(const char *text)
{
	char *end;
	errno = 0;
	long value = strtol(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || value <= 0 || value > 1000000000)
		errx(2, "%s is not a number from 1 to 1000000000", text);
	return value;
}

int main(int argc, char **argv)
{
	for (int option; (option = getopt(argc, argv, "t:m:n:")) != -1;) {
		switch (option) {
		case 't':
			limits.time_ms = number(optarg);
			break;
		case 'm':
			limits.memory = (size_t)number(optarg) << 20;
			break;
		case 'n':
			limits.lookups = number(optarg);
			break;
		default:
			argc = 0;
		}
	}
	if (argc - optind != 3)
		errx(2, "usage: mapd [-t MILLISECONDS] [-m MEBIBYTES] [-n LOOKUPS] PORT TABLE SCRIPT");
	int listener = listen_on(argv[optind]);
	table = argv[optind + 1];
	script = argv[optind + 2];
	drop_root();
	const char *failure = start_worker();
	if (failure != NULL)
		errx(1, "%s: %s", script, failure + strlen("TEMP "));
	puts("ready");
	fclose(stdout);

	for (;;) {
		struct pollfd wait[1 + MOST_CLIENTS] = { { .fd = client_count < MOST_CLIENTS ? listener : -1, .events = POLLIN } };
		for (int i = 0; i < client_count; i++)
			wait[1 + i] = (struct pollfd){ .fd = clients[i].fd, .events = POLLIN };
		if (poll(wait, 1 + (nfds_t)client_count, -1) < 0)
			continue;
		/* From the last one: what takes the place of one that goes has been looked at. */
		for (int i = client_count - 1; i >= 0; i--) {
			if (wait[1 + i].revents != 0 && !attend(&clients[i])) {
				close(clients[i].fd);
				clients[i] = clients[--client_count];
			}
		}
		if (wait[0].revents != 0)
			welcome(listener);
	}
}
