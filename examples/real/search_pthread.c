/*
 * search_pthread.c - search.c with threads: see there what it does.
 *
 * What to look at: WORKERS threads share one list of directories and files. What the
 * channel, the semaphore and two wait groups do in search.c is done here by a mutex, a
 * condition and a count of names that are not done yet. The list has no bound: a
 * thread that waited for room in it would be one fewer to make room.
 */
#define _GNU_SOURCE
#include "search_match.h"
#include <pthread.h>

struct name {
	struct name *next;
	unsigned char type;
	bool named;
	char path[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct name *names;		/* the newest first: that keeps the list short */
static int undone;			/* in the list, or worked on */

static void add(const char *directory, const char *base, unsigned char type, bool named)
{
	size_t n = strlen(directory) + strlen(base) + 2;
	struct name *name = malloc(sizeof *name + n);

	if (!name) {
		complain(base, ENOMEM);
		return;
	}
	name->type = type;
	name->named = named;
	snprintf(name->path, n, "%s%s%s", directory, *directory ? "/" : "", base);
	pthread_mutex_lock(&lock);
	name->next = names;
	names = name;
	undone++;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&lock);
}

/* NULL: there are no more, and there will be none. */
static struct name *next(void)
{
	struct name *name;

	pthread_mutex_lock(&lock);
	while (!names && undone > 0)
		pthread_cond_wait(&more, &lock);
	if ((name = names))
		names = name->next;
	pthread_mutex_unlock(&lock);
	return name;
}

static void done(struct name *name)
{
	free(name);
	pthread_mutex_lock(&lock);
	if (--undone == 0)
		pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&lock);
}

static void walk(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		complain(path, errno);
	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			add(path, entry->d_name, entry->d_type, false);
	if (dir)
		closedir(dir);
}

static void visit(struct matcher *m, struct name *name)
{
	const char *block;
	struct stat about;
	size_t size;

	if (name->type == DT_UNKNOWN) {
		if ((name->named ? stat : lstat)(name->path, &about) != 0) {
			complain(name->path, errno);
			return;
		}
		name->type = IFTODT(about.st_mode);
	}
	if (name->type == DT_DIR) {
		walk(name->path);
	} else if (name->type == DT_REG || name->named) {
		block = search_file(m, name->path, &size);
		if (size > 0) {
			found = true;
			pthread_mutex_lock(&output);
			fwrite(block, 1, size, stdout);
			pthread_mutex_unlock(&output);
		}
	}
}

static void *work(void *unused)
{
	struct matcher *m = matcher_make();
	struct name *name;

	while ((name = next())) {
		visit(m, name);
		done(name);
	}
	matcher_free(m);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t *threads;
	int err = 0, n = 0;

	options.workers = 4 * (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (!read_options(argc, argv))
		return 2;
	add("", optind < argc ? argv[optind] : ".", DT_UNKNOWN, true);
	for (int i = optind + 1; i < argc; i++)
		add("", argv[i], DT_UNKNOWN, true);
	threads = calloc((size_t)options.workers, sizeof *threads);
	while (threads && n < options.workers &&
	       !(err = pthread_create(&threads[n], NULL, work, NULL)))
		n++;
	if (n == 0)
		complain("threads", err ? err : ENOMEM);
	while (n > 0)
		pthread_join(threads[--n], NULL);
	free(threads);
	if (fflush(stdout) != 0 || ferror(stdout))
		complain("stdout", errno);
	return failed ? 2 : found ? 0 : 1;
}
