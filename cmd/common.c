/*
 * common.c - messages, memory, child processes, and where the library lies.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd.h"

void say(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("goro: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

_Noreturn void die(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("goro: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(STATUS_FAILED);
}

bool asks_for_help(int argc, char **argv)
{
	return argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

void *alloc(size_t n)
{
	void *p = malloc(n);

	if (!p)
		die("out of memory");
	return p;
}

char *format(const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		die("out of memory");
	return text;
}

void words_add(struct words *w, const char *word)
{
	if (w->n + 2 > w->room) {
		w->room = 2 * w->room + 16;
		w->at = realloc(w->at, w->room * sizeof *w->at);
		if (!w->at)
			die("out of memory");
	}
	w->at[w->n++] = (char *)word;
	w->at[w->n] = NULL;
}

void words_split(struct words *w, const char *words)
{
	char *rest = NULL;

	for (char *word = strtok_r(format("%s", words), " \t", &rest); word;
	     word = strtok_r(NULL, " \t", &rest))
		words_add(w, word);
}

struct words list_folder(const char *path)
{
	struct words w = { 0 };
	DIR *d = opendir(path);
	struct dirent *e;

	if (!d)
		return w;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			words_add(&w, format("%s", e->d_name));
	closedir(d);
	return w;
}

int spawn(const struct words *w, int out)
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	if (child < 0) {
		say("cannot start %s: %s", w->at[0], strerror(errno));
		return -1;
	}
	if (child == 0) {
		if (out >= 0)
			dup2(out, 1);
		execvp(w->at[0], w->at);
		say("cannot run %s: %s", w->at[0], strerror(errno));
		_exit(127);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The folder that this program lies in. */
static char *own_folder(void)
{
	char path[4096], *slash;
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	if (n < 0)
		die("cannot tell where this program lies: /proc/self/exe: %s", strerror(errno));
	path[n] = '\0';
	slash = strrchr(path, '/');
	*slash = '\0';
	return format("%s", path);
}

/* GORO_LIBDIR and GORO_INCLUDEDIR are those below the prefix, GORO_SOURCE_DIR is the
 * tree that this was built from. */
struct place find_library(void)
{
	char *folder = own_folder();
	struct place built = { GORO_SOURCE_DIR "/include", format("%s/../libgoro.a", folder),
		               format("%s/../extra/calls", folder) };
	struct place installed = { format("%s/../" GORO_INCLUDEDIR, folder),
		                   format("%s/../" GORO_LIBDIR "/libgoro.a", folder),
		                   format("%s/../" GORO_LIBDIR, folder) };

	if (access(built.library, R_OK) == 0)
		return built;
	if (access(installed.library, R_OK) == 0)
		return installed;
	die("libgoro.a is neither in %s nor in %s", folder, installed.library);
}
