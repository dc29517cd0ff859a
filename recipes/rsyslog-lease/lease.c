/* A daemon that hands out leases like a DHCP server: it logs what it was asked, decides, logs that, and only then
 * answers. One thread, so that whoever holds up syslog(3) holds up every client.
 * usage: lease PORT
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>

/* Each client keeps its address: 10.0.0.1 for the first one, and so on. */
static void decide(unsigned long client, char *address, size_t size)
{
	snprintf(address, size, "10.%lu.%lu.%lu", client >> 16 & 255, client >> 8 & 255, client & 255);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		errx(2, "usage: lease PORT");
	struct sockaddr_in here = {
		.sin_family = AF_INET,
		.sin_port = htons((unsigned short)atoi(argv[1])),
		.sin_addr = {htonl(INADDR_LOOPBACK)},
	};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here) != 0)
		err(1, "port %s", argv[1]);
	openlog("lease", LOG_NDELAY, LOG_DAEMON);

	for (;;) {
		char request[128], name[32], address[32], reply[128];
		unsigned long client;
		struct sockaddr_in from;
		socklen_t size = sizeof from;
		ssize_t length = recvfrom(fd, request, sizeof request - 1, 0, (struct sockaddr *)&from, &size);
		if (length < 0)
			err(1, "recvfrom");
		request[length] = 0;
		if (sscanf(request, "%31s %lu", name, &client) != 2)
			continue;

		syslog(LOG_INFO, "discover from %s %lu", name, client);
		decide(client, address, sizeof address);
		syslog(LOG_INFO, "offer of %s to %s %lu", address, name, client);

		int written = snprintf(reply, sizeof reply, "%s %lu %s", name, client, address);
		if (sendto(fd, reply, (size_t)written, 0, (struct sockaddr *)&from, size) != written)
			err(1, "sendto");
	}
}
