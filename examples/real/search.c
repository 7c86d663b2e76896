/*
 * search.c - searches files and directories for a pattern, in parallel: a small ripgrep.
 *
 *	search [-Fil] [-j WORKERS] PATTERN [PATH...]      an extended regular expression
 *	search -i 'goro_[a-z]*_make' include docs      -F: fixed string; -i: ignore case;
 *	                                               -l: names of files alone
 *
 * It prints PATH:LINE:TEXT, as grep -rnI does, and ends with grep's status: 0 found, 1
 * not, 2 an error. Binary files are skipped, and links below a PATH. Each file's lines
 * are one block; the files come in any order.
 *
 * What to look at: a goroutine for each directory, a few that search. Both call
 * opendir, read and regexec as they are. PLACES limits the open directories, WORKERS
 * the open files, and the channel how many names are known ahead of the search.
 * search_pthread.c is the same program with threads; both have search_match.h, which
 * is all that is not about doing it in parallel.
 */
#define _GNU_SOURCE
#include "search_match.h"
#include <goro.h>

enum { PLACES = 64, FILES_AHEAD = 1000 };

static goro_chan *files;		/* of char *: the receiver frees the name */
static goro_waitgroup walkers, searchers;
static goro_sema places;
static goro_mutex output;

/* Searches files until there are no more. */
static void search(void)
{
	struct matcher *m = matcher_make();
	const char *block;
	size_t size;
	char *path;

	while (goro_chan_recv(files, &path)) {
		block = search_file(m, path, &size);
		if (size > 0) {
			found = true;
			goro_mutex_lock(&output);
			fwrite(block, 1, size, stdout);
			goro_mutex_unlock(&output);
		}
		free(path);
	}
	matcher_free(m);
	goro_waitgroup_done(&searchers);
}

static void walk(char *path);

/* Takes the name over. A file that was named is searched whatever kind it is. */
static void visit(char *path, unsigned char type, bool named)
{
	struct stat about;

	if (type == DT_UNKNOWN) {
		if ((named ? stat : lstat)(path, &about) != 0) {
			complain(path, errno);
			free(path);
			return;
		}
		type = IFTODT(about.st_mode);
	}
	if (type == DT_DIR) {
		goro_waitgroup_add(&walkers, 1);
		go(walk, path);
	} else if (type == DT_REG || named) {
		goro_chan_send(files, &path);
	} else {
		free(path);
	}
}

/* One directory. What lies below gets goroutines of its own, which wait for a place. */
static void walk(char *path)
{
	struct dirent *entry;
	char *below;
	DIR *dir;

	goro_sema_acquire(&places, 1, GORO_FOREVER);
	if (!(dir = opendir(path)))
		complain(path, errno);
	while (dir && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (asprintf(&below, "%s/%s", path, entry->d_name) < 0)
			complain(path, ENOMEM);
		else
			visit(below, entry->d_type, false);
	}
	if (dir)
		closedir(dir);
	goro_sema_release(&places, 1);
	free(path);
	goro_waitgroup_done(&walkers);
}

static int start(int argc, char **argv)
{
	options.workers = 4 * goro_gomaxprocs(0);
	if (!read_options(argc, argv))
		return 2;
	goro_sema_init(&places, PLACES);
	files = goro_chan_of(char *, FILES_AHEAD);
	goro_waitgroup_add(&searchers, options.workers);
	for (int i = 0; i < options.workers; i++)
		go(search);

	visit(strdup(optind < argc ? argv[optind] : "."), DT_UNKNOWN, true);
	for (int i = optind + 1; i < argc; i++)
		visit(strdup(argv[i]), DT_UNKNOWN, true);
	goro_waitgroup_wait(&walkers);
	goro_chan_close(files);
	goro_waitgroup_wait(&searchers);
	goro_chan_unref(files);

	if (fflush(stdout) != 0 || ferror(stdout))
		complain("stdout", errno);
	return failed ? 2 : found ? 0 : 1;
}
GORO_MAIN(start)
