/*
 * cmd.h - what the files of the goro command share.
 *
 * Each subcommand is a function in a file of its own, and an entry in the table of
 * main.c. It gets its own words, beginning with its name, and returns the exit status: 0,
 * STATUS_FAILED for a failure that it has reported, STATUS_USAGE for wrong words.
 */
#ifndef GORO_CMD_H
#define GORO_CMD_H

#include <stdbool.h>
#include <stddef.h>

enum { STATUS_FAILED = 1, STATUS_USAGE = 2 };

int cmd_run(int argc, char **argv);
int cmd_build(int argc, char **argv);
int cmd_new(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_profile(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* "goro: " and the message on standard error. die ends with STATUS_FAILED. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The first word behind the subcommand is --help or -h. */
bool asks_for_help(int argc, char **argv);

/* malloc and the like, which die without memory. */
void *alloc(size_t n);
char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A list of words that ends with NULL, as execv takes it. Zeroed, it is empty. */
struct words {
	char **at;
	size_t n, room;
};
void words_add(struct words *w, const char *word);
void words_split(struct words *w, const char *words);	/* at blanks */

/* The names in a folder, but for those that begin with a dot. */
struct words list_folder(const char *path);

/* Runs a program and waits for it: its exit status, 128 and the number of the signal that
 * ended it, or -1 if it could not be started (which is said). With out, the descriptor
 * becomes its standard output. */
int spawn(const struct words *w, int out);

/* Where the library lies that belongs to this command: in the folder above its own in a
 * build tree, or in the lib and include folders of the prefix that it is installed in. */
struct place {
	char *include, *library;	/* a folder; the static library */
	char *calls_folder;		/* of libgoro-calls.so, if it was built */
};
struct place find_library(void);

#endif
