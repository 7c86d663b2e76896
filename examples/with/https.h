/* https.h - as little of HTTP as ssl.c and ssl_server.c need. */
#ifndef HTTPS_H
#define HTTPS_H

#include <stdlib.h>
#include <string.h>

#define HTTPS_MAX 4096	/* bytes of a message */

/* A message that is read in pieces. A zeroed one is empty. */
struct https {
	char text[HTTPS_MAX + 1];
	int n;
};

/* How many bytes the message has when it is complete; 0: it is not. */
static inline int https_complete(const struct https *m)
{
	const char *end = strstr(m->text, "\r\n\r\n");
	const char *length = strcasestr(m->text, "content-length:");
	int size = end ? (int)(end - m->text) + 4 : 0;

	if (size > 0 && length && length < end)
		size += atoi(length + strlen("content-length:"));
	return size > 0 && size <= m->n ? size : 0;
}

#endif
