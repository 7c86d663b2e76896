/*
 * main.c - the goro command: finds the subcommand and runs it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
	{ "run", cmd_run, "compile a C or C++ file and run it" },
	{ "build", cmd_build, "compile C or C++ files into a program" },
	{ "new", cmd_new, "make a project in a new folder" },
	{ "dump", cmd_dump, "the stacks of all goroutines of a running program" },
	{ "top", cmd_top, "what the goroutines of a running program do, live" },
	{ "trace", cmd_trace, "when which goroutine ran where, and why it waited" },
	{ "profile", cmd_profile, "where CPU time goes, or where goroutines are" },
	{ "explain", cmd_explain, "how goroutines, threads and processors work, step by step" },
	{ "doctor", cmd_doctor, "what this machine offers, and what falls back" },
	{ "version", cmd_version, "which goro this is" },
};

#define N_COMMANDS (sizeof commands / sizeof *commands)

static void usage(FILE *out)
{
	fputs("usage: goro COMMAND [WORDS]\n\n", out);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(out, "    %-10s %s\n", commands[i].name, commands[i].what);
	fputs("\ngoro COMMAND --help tells more, and so does goro(1).\n", out);
}

static int run(int argc, char **argv)
{
	if (argc < 2) {
		usage(stderr);
		return STATUS_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		usage(stdout);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0)
		argv[1] += 2;
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	say("no such command: %s", argv[1]);
	usage(stderr);
	return STATUS_USAGE;
}

/* What was printed and could not be written is a failure, too. */
int main(int argc, char **argv)
{
	int status = run(argc, argv);

	if (fflush(stdout) != 0 || ferror(stdout))
		die("cannot write: %s", strerror(errno));
	return status;
}
