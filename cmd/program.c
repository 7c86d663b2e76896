/*
 * program.c - runs a program that leaves a file, and shows that.
 */
#include "program.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"

static void on_interrupt(int sig)
{
	(void)sig;
}

static bool is_source(const char *path)
{
	const char *dot = strrchr(path, '.');
	static const char *const endings[] = { ".c", ".cc", ".cpp", ".cxx", ".C", ".c++" };

	for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
		if (strcmp(dot, endings[i]) == 0)
			return true;
	return false;
}

bool is_program(const char *word)
{
	return access(word, X_OK) == 0 || is_source(word) || access(word, F_OK) != 0;
}

/* The program's, or those that compile and run it. */
static struct words words_to_run(char **words)
{
	struct words w = { 0 };

	if (is_source(words[0])) {
		words_add(&w, "/proc/self/exe");
		words_add(&w, "run");
	}
	for (; *words; words++)
		words_add(&w, *words);
	return w;
}

static int run(const struct program *p, const char *path)
{
	struct words w = words_to_run(p->words);

	setenv(p->variable, path, 1);
	signal(SIGINT, on_interrupt);
	return spawn(&w, -1);
}

char *temporary_file(const char *what)
{
	const char *folder = getenv("TMPDIR");
	char *path = format("%s/goro-%s-XXXXXX", folder && *folder ? folder : "/tmp", what);
	int fd = mkstemp(path);

	if (fd < 0)
		die("cannot make a file: %s: %s", path, strerror(errno));
	close(fd);
	return path;
}

static bool is_empty(const char *path)
{
	struct stat st;

	return stat(path, &st) != 0 || st.st_size == 0;
}

int program_run(const struct program *p)
{
	char *path = p->out ? format("%s", p->out) : temporary_file(p->what);
	int ended, status;

	if (p->out && unlink(path) != 0 && errno != ENOENT)
		die("cannot write %s: %s", path, strerror(errno));
	ended = run(p, path);
	if (ended > 0)
		say("%s has ended with status %d", p->words[0], ended);
	if (ended >= 0 && is_empty(path)) {
		say("there is no %s: is %s a program with goro, and did it end by exit?", p->what,
		    p->words[0]);
		status = STATUS_FAILED;
	} else {
		status = ended < 0 ? STATUS_FAILED : p->show(p->arg, path, p->out ? p->out : p->words[0]);
	}
	if (!p->out)
		unlink(path);
	free(path);
	return ended == 0 ? status : STATUS_FAILED;
}
