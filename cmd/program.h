/*
 * program.h - running a program that leaves a file, and showing that. Defined in
 * program.c.
 */
#ifndef GORO_CMD_PROGRAM_H
#define GORO_CMD_PROGRAM_H

#include <stdbool.h>

struct program {
	const char *variable;	/* the program gets the file's name in it */
	const char *what;	/* the file is: "trace" */
	const char *out;	/* the file, which then is kept; NULL: a temporary one */
	char **words;		/* the program, and its words; NULL behind the last */
	/* Shows the file: an exit status. name: what it is called, the file or the
	 * program. */
	int (*show)(void *arg, const char *path, const char *name);
	void *arg;
};

/* The word is a C or C++ file, can be executed, or names no file: a program of the
 * PATH. */
bool is_program(const char *word);

/* A new file in the folder for such: its name is to be freed. Dies where that fails. */
char *temporary_file(const char *what);

/* Runs it and shows the file. A C or C++ file is compiled first. ^C ends the program
 * alone. Returns the exit status, which is STATUS_FAILED where the program fails, too. */
int program_run(const struct program *p);

#endif
