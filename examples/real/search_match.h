/*
 * search_match.h - what search.c and search_pthread.c have in common: options, and how
 * one file is searched. Plain C and plain system calls, which know of no goroutine and
 * no thread.
 */
#ifndef SEARCH_MATCH_H
#define SEARCH_MATCH_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	bool fixed, ignore_case, names_only;
	int workers;
	const char *pattern;
} options;

static atomic_bool found, failed;

/* One for each worker: glibc locks a regex_t while it searches with it. */
struct matcher {
	regex_t regex;
	char *text;			/* a piece of the file, from a line's start */
	size_t have, room;
	FILE *out;			/* what was found in the file, one block */
	char *block;
	size_t block_size;
};

/* --------------------------------------------------------------- options */

/* The pattern with all that is special in it taken as it is. */
static char *quoted(const char *pattern)
{
	char *copy = malloc(2 * strlen(pattern) + 1), *to = copy;

	for (; copy && *pattern; *to++ = *pattern++)
		if (strchr("\\^$.|?*+()[{", *pattern))
			*to++ = '\\';
	if (copy)
		*to = '\0';
	return copy;
}

static int compile(regex_t *regex)
{
	char *pattern = options.fixed ? quoted(options.pattern) : strdup(options.pattern);
	int flags = REG_EXTENDED | REG_NEWLINE | (options.ignore_case ? REG_ICASE : 0);
	int err = pattern ? regcomp(regex, pattern, flags) : REG_ESPACE;
	char why[200];

	free(pattern);
	if (err) {
		regerror(err, regex, why, sizeof why);
		fprintf(stderr, "search: %s: %s\n", options.pattern, why);
	}
	return err;
}

/* False, after it has said why, if the options or the pattern make no sense. */
static bool read_options(int argc, char **argv)
{
	bool known = true;
	regex_t regex;

	for (int option; (option = getopt(argc, argv, "Filj:")) != -1; )
		switch (option) {
		case 'F': options.fixed = true; break;
		case 'i': options.ignore_case = true; break;
		case 'l': options.names_only = true; break;
		case 'j': options.workers = atoi(optarg); break;
		default: known = false; break;
		}
	if (!known || optind >= argc || options.workers < 1 || options.workers > 1000) {
		fprintf(stderr, "usage: search [-Fil] [-j WORKERS] PATTERN [PATH...]\n");
		return false;
	}
	options.pattern = argv[optind++];
	if (strchr(options.pattern, '\n')) {
		fprintf(stderr, "search: a newline in the pattern\n");
		return false;
	}
	if (compile(&regex))
		return false;
	regfree(&regex);
	return true;
}

static void complain(const char *path, int err)
{
	fprintf(stderr, "search: %s: %s\n", path, strerror(err));
	failed = true;
}

static struct matcher *matcher_make(void)
{
	struct matcher *m = calloc(1, sizeof *m);

	if (!m || compile(&m->regex))
		abort();		/* it was compiled before: no memory */
	m->room = 65536;
	m->text = malloc(m->room + 1);
	m->out = open_memstream(&m->block, &m->block_size);
	if (!m->text || !m->out)
		abort();
	return m;
}

static void matcher_free(struct matcher *m)
{
	regfree(&m->regex);
	fclose(m->out);
	free(m->block);
	free(m->text);
	free(m);
}

/* -------------------------------------------------------------- one file */

/* Where in from..end a match begins, or NULL. */
static const char *match(struct matcher *m, const char *from, const char *end)
{
	regmatch_t where = { 0, end - from };

	if (options.fixed && !options.ignore_case)
		return memmem(from, (size_t)(end - from), options.pattern,
		              strlen(options.pattern));
	if (regexec(&m->regex, from, 1, &where, REG_STARTEND) != 0)
		return NULL;
	return from + where.rm_so;
}

/* Counts lines up to end, and returns where the last begins. */
static const char *count_lines(const char *at, const char *end, size_t *line)
{
	const char *newline;

	for (; (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1)
		++*line;
	return at;
}

/* Whether nothing else of the file matters. */
static bool is_done(const struct matcher *m)
{
	return options.names_only && ftell(m->out) > 0;
}

/* Prints the lines of at..end that match. One search runs over many lines. A match that
 * it finds may go beyond its line ("a\s*b"), so that line is searched again by itself. */
static void search_lines(struct matcher *m, const char *path, const char *at,
                         const char *end, size_t *line)
{
	const char *hit, *begin, *newline;

	while (at < end && !is_done(m) && (hit = match(m, at, end))) {
		begin = count_lines(at, hit, line);
		if (begin == end)
			return;		/* "^$" behind the last newline */
		newline = memchr(hit, '\n', (size_t)(end - hit));
		newline = newline ? newline : end;
		if (match(m, begin, newline)) {
			fputs(path, m->out);
			if (!options.names_only) {
				fprintf(m->out, ":%zu:", *line);
				fwrite(begin, 1, (size_t)(newline - begin), m->out);
			}
			fputc('\n', m->out);
		}
		at = newline + 1;
		++*line;
	}
	if (at < end)
		count_lines(at, end, line);
}

/* Reads on behind what is there of a line; 0 at the end, negative errno. */
static ssize_t read_piece(struct matcher *m, int fd)
{
	char *more = m->text;
	ssize_t n;

	if (m->have == m->room) {
		if (!(more = realloc(m->text, 2 * m->room + 1)))
			return -ENOMEM;
		m->text = more;
		m->room *= 2;
	}
	n = read(fd, m->text + m->have, m->room - m->have);
	if (n < 0)
		return -errno;
	m->text[m->have + (size_t)n] = '\0';	/* AddressSanitizer's regexec wants one */
	return n;
}

/* Searches a file. Its block of output, *size bytes, is valid until the next call. From a
 * NUL on it is not text, and skipped. */
static const char *search_file(struct matcher *m, const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : 1;
	const char *newline;
	size_t line = 1;

	rewind(m->out);
	for (m->have = 0; n > 0 && (n = read_piece(m, fd)) > 0; ) {
		if (memchr(m->text + m->have, '\0', (size_t)n) || is_done(m))
			break;
		m->have += (size_t)n;
		if (!(newline = memrchr(m->text + m->have - n, '\n', (size_t)n)))
			continue;
		newline++;
		search_lines(m, path, m->text, newline, &line);
		m->have -= (size_t)(newline - m->text);
		memmove(m->text, newline, m->have);
	}
	if (n == 0)		/* the last line has no newline */
		search_lines(m, path, m->text, m->text + m->have, &line);
	else if (n < 0)
		complain(path, (int)-n);
	if (fd >= 0)
		close(fd);
	fflush(m->out);
	*size = (size_t)ftell(m->out);
	return m->block;
}

#endif
