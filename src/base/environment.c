/*
 * environment.c - what the environment asks of the runtime.
 *
 * Privileged programs. A program that is set-uid or set-gid or has file capabilities runs
 * with rights that its caller lacks, and its caller chose the environment. Such a program
 * ignores every variable: even a stack limit that is too small is a crash at the caller's
 * will.
 *
 * Files of several processes. A program's children inherit its environment, and with it
 * the names of its files. A process that opens a file locks it (flock), and leaves a file
 * that is locked alone: the child says so on stderr and runs on without. With %p in the
 * name each process has a file of its own. Only regular files are locked.
 */
#define _GNU_SOURCE
#include "base/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

const char *environment_get(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}

void environment_complain(const char *name, const char *why)
{
	fprintf(stderr, "goro: %s=%s: %s\n", name, environment_get(name), why);
}

bool environment_expand(const char *value, char *out, size_t max)
{
	struct text t = text_make(out, max);
	const char *p;

	for (; (p = strstr(value, "%p")); value = p + 2) {
		text_add_bytes(&t, value, (size_t)(p - value));
		text_add_decimal(&t, (unsigned)getpid());
	}
	text_add(&t, value);
	return !t.cut;
}

/* Empties a regular file, unless another process writes it. */
static int take_over(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return 0;
	/* Any other error: the file system has no locks. */
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		return -EBUSY;
	return ftruncate(fd, 0) == 0 ? 0 : -errno;
}

static int open_file(const char *value)
{
	char path[PATH_MAX];
	int fd, error;

	if (!environment_expand(value, path, sizeof path))
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	error = take_over(fd);
	if (error)
		close(fd);
	return error ? error : fd;
}

int environment_open(const char *name)
{
	const char *value = environment_get(name);
	int fd = value ? open_file(value) : -1;

	if (!value || fd >= 0)
		return fd;
	environment_complain(name, fd == -EBUSY ? "another process writes it (%p in the name "
	                                          "is replaced by the process id)" : strerror(-fd));
	return -1;
}
