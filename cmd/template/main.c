/*
 * @NAME@ - counts the lines of files, several at once.
 *
 * A few workers take jobs from one channel and send them back on another when they are
 * done. Closing the first channel ends the workers.
 */
#include <errno.h>
#include <goro.h>
#include <stdio.h>
#include <string.h>

struct job {
	int index;		/* of the file, in argv */
	long lines;
	int error;		/* 0 or an errno */
};

static void count_lines(const char *path, struct job *job)
{
	FILE *f = fopen(path, "r");
	int c;

	if (!f) {
		job->error = errno;
		return;
	}
	while ((c = getc(f)) != EOF)
		job->lines += c == '\n';
	job->error = ferror(f) ? EIO : 0;
	fclose(f);
}

/* The channels are references of its own, which it gives back. */
static void worker(goro_chan *jobs, goro_chan *results, char **argv)
{
	struct job job;

	while (goro_chan_recv(jobs, &job)) {
		count_lines(argv[job.index], &job);
		goro_chan_send(results, &job);
	}
	goro_chan_unref(jobs);
	goro_chan_unref(results);
}

static void send_jobs(goro_chan *jobs, int argc)
{
	for (int i = 1; i < argc; i++)
		goro_chan_send(jobs, &(struct job){ .index = i });
	goro_chan_close(jobs);
	goro_chan_unref(jobs);
}

/* Prints the results as they come. The exit status. */
static int print_results(goro_chan *results, int argc, char **argv)
{
	struct job job;
	long total = 0;
	int status = 0;

	for (int i = 1; i < argc; i++) {
		goro_chan_recv(results, &job);
		if (job.error) {
			fprintf(stderr, "%s: %s\n", argv[job.index], strerror(job.error));
			status = 1;
			continue;
		}
		printf("%8ld %s\n", job.lines, argv[job.index]);
		total += job.lines;
	}
	printf("%8ld total\n", total);
	return status;
}

static int start(int argc, char **argv)
{
	goro_chan *jobs = goro_chan_of(struct job, 0), *results = goro_chan_of(struct job, 0);
	int status;

	for (int i = 0; i < goro_gomaxprocs(0); i++)
		go(worker, goro_chan_ref(jobs), goro_chan_ref(results), argv);
	go(send_jobs, goro_chan_ref(jobs), argc);
	status = print_results(results, argc, argv);
	goro_chan_unref(jobs);
	goro_chan_unref(results);
	return status;
}

GORO_MAIN(start)
