/*
 * version.c - goro version.
 */
#include <stdio.h>
#include <sys/utsname.h>

#include <goro.h>

#include "cmd.h"

int cmd_version(int argc, char **argv)
{
	struct utsname name;

	if (argc > 1) {
		fputs("usage: goro version\n\nPrints which goro this is, and for which machine.\n",
		      asks_for_help(argc, argv) ? stdout : stderr);
		return asks_for_help(argc, argv) ? 0 : STATUS_USAGE;
	}
	uname(&name);
	printf("goro version " GORO_VERSION " linux/%s\n", name.machine);
	return 0;
}
