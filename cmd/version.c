/*
 * version.c - goro version.
 */
#include <stdio.h>
#include <sys/utsname.h>

#include "cmd.h"

int cmd_version(int argc, char **argv)
{
	struct utsname name;

	(void)argc, (void)argv;
	uname(&name);
	printf("goro version " GORO_VERSION " linux/%s\n", name.machine);
	return 0;
}
