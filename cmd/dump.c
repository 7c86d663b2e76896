/*
 * dump.c - goro dump: the stacks of all goroutines of a program that goes on running.
 */
#include <stdio.h>
#include <stdlib.h>

#include "client.h"
#include "cmd.h"

static const char help[] =
	"usage: goro dump PID | ADDRESS\n"
	"\n"
	"Prints the stacks of all goroutines of a program, which goes on running.\n"
	CLIENT_TARGETS
	"\n"
	"    goro dump $(pidof server)\n"
	"    goro dump :6060\n";

int cmd_dump(int argc, char **argv)
{
	struct client *c;
	char *text;
	size_t n;

	if (asks_for_help(argc, argv)) {
		fputs(help, stdout);
		return 0;
	}
	if (argc != 2 || argv[1][0] == '-') {
		fputs(help, stderr);
		return STATUS_USAGE;
	}
	c = client_open(argv[1]);
	text = c ? client_get(c, "/debug/pprof/goroutine?debug=2", false, &n) : NULL;
	if (!text)
		return STATUS_FAILED;
	fwrite(text, 1, n, stdout);
	free(text);
	client_close(c);
	return 0;
}
