/*
 * client.h - asking a program's debug server. Defined in client.c.
 */
#ifndef GORO_CMD_CLIENT_H
#define GORO_CMD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

/* Of the words that name a program, for help. */
#define CLIENT_TARGETS \
	"A process id; or where the program's debug server listens: HOST:PORT, :PORT,\n" \
	"unix:PATH.\n"

/* A connection to a program. target: a process id or an address. NULL: why was said. */
struct client;
struct client *client_open(const char *target);
void client_close(struct client *c);

/* The word is a process id, or an address with a colon, and no file. */
bool client_is_target(const char *word);

/* How long an answer may take to come, instead of a minute. */
void client_patience(struct client *c, double seconds);

/* The content at the path, ended by a zero and of *n bytes, to be freed; the connection
 * may be used again if keep is set. NULL: why was said. */
char *client_get(struct client *c, const char *path, bool keep, size_t *n);

/* Writes what came to a file, or dies. */
void client_keep(const char *path, const char *bytes, size_t n);

#endif
