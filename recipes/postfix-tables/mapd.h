/* What the server and the process that runs the script have in common. */
#ifndef MAPD_H
#define MAPD_H

#include <stddef.h>

/* Postfix reads replies of up to 100,000 bytes (socketmap_table(5)). */
enum { LONGEST_KEY = 8192, LONGEST_REPLY = 100000 };

struct limits {
	long time_ms;   /* of one lookup; also of loading the script */
	size_t memory;  /* bytes that the script may allocate */
	long lookups;   /* after so many the script starts anew */
};

/* The script's process: loads the script, answers keys that come through the channel, and does not return.
 * A message to the server is one byte, and then the text of the answer: */
enum { AGAIN = '+', LAST = '.' }; /* LAST: it ends now, by itself */
_Noreturn void work(int channel, const char *script, const struct limits *limits);

#endif
