/*
 * cron.c - runs commands at times, as cron does.
 *
 *	cron [-g GRACE] TABLE            runs what is in TABLE until SIGTERM or SIGINT
 *	cron -n COUNT TABLE [TIME]       says when each line is due, COUNT times from TIME
 *	cron -f TABLE                    its clock shows what the lines of its input say
 *
 *	# minute hour day month weekday command: crontab(5), or @daily ..., or @every 90s
 *	TIMEOUT=30                       seconds, for the lines below; 0: none
 *	OVERLAP=no                       not while the same line runs (yes: as cron does)
 *	5,35 9-17 * * mon-fri  fetchmail
 *	@every 10s             date >>log
 *
 * What to look at: main has all state and one select: ticks of the clock, commands
 * that have ended, signals. A goroutine for each command waits for its pidfd, and
 * kills the command's process group when its time is up; it holds no thread. The clock
 * is a channel of times, so a clock that lies (-f) makes the tests exact: "2024-02-28
 * 23:59:00" or "@SECONDS".
 *
 * The clock may jump. Back by up to three hours: what is done is not done again, and
 * the clock has to catch up. Forward by as much: what was missed is run once. More
 * than that is taken for a clock that is set right: it counts from there. SIGTERM
 * waits GRACE seconds (10) for what runs, then sends it SIGTERM, and SIGKILL after
 * five more.
 */
#define _GNU_SOURCE
#include "cron_time.h"
#include <fcntl.h>
#include <goro.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_AFTER (5 * GORO_SECOND)	/* from SIGTERM to SIGKILL */
#define JUMP_MAX   (3 * 3600)

struct job {
	struct job *next;
	struct spec spec;
	time_t due;
	int64_t timeout;		/* 0: none */
	bool overlap;
	int running;
	char command[];
};

struct run {
	struct run *next;
	struct job *job;
	pid_t pid;			/* and group; until main has waited for it */
	int pidfd;
	bool timed_out;
};

static struct job *jobs, **jobs_end = &jobs;
static struct run *runs;
static time_t now;			/* as of the last tick */
static goro_chan *ticks;		/* the clock's, which never ends */

/* ----------------------------------------------------------------- times */

static const char *show(time_t t)
{
	static char text[40];
	struct tm tm;

	strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", localtime_r(&t, &tm));
	return text;
}

static time_t read_time(const char *text)
{
	struct tm tm = { .tm_isdst = -1 };
	const char *end = *text == '@' ? strptime(text + 1, "%s", &tm)
	                               : strptime(text, "%Y-%m-%d %H:%M:%S", &tm);

	return end && *end == '\0' ? mktime(&tm) : NEVER;
}

/* Sends the time at the start of each second. */
static void real_clock(void)
{
	struct timespec ts;

	for (;;) {
		clock_gettime(CLOCK_REALTIME, &ts);
		goro_chan_send(ticks, &ts.tv_sec);
		clock_gettime(CLOCK_REALTIME, &ts);
		goro_sleep(GORO_SECOND - ts.tv_nsec);
	}
}

/* Sends the times that it reads. */
static void fake_clock(void)
{
	char line[100];
	time_t t;

	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if ((t = read_time(line)) != NEVER)
			goro_chan_send(ticks, &t);
		else
			fprintf(stderr, "cron: no time: %s\n", line);
	}
	goro_chan_close(ticks);
}

/* ----------------------------------------------------------------- table */

static bool read_line(char *line, int64_t *timeout, bool *overlap, const char **why)
{
	const char *text = line;
	struct job *job;
	int seconds, end = 0;

	line[strcspn(line, "\n")] = '\0';
	skip_blanks(&text);
	if (*text == '\0' || *text == '#')
		return true;
	if (sscanf(text, "TIMEOUT=%d%n", &seconds, &end) == 1 && !text[end] &&
	    seconds >= 0) {
		*timeout = seconds * GORO_SECOND;
		return true;
	}
	if (strcmp(text, "OVERLAP=yes") == 0 || strcmp(text, "OVERLAP=no") == 0) {
		*overlap = text[8] == 'y';
		return true;
	}
	if (!(job = calloc(1, sizeof *job + strlen(text) + 1))) {
		*why = strerror(ENOMEM);
		return false;
	}
	if (isalpha((unsigned char)*text))
		*why = "neither a time nor TIMEOUT=SECONDS, OVERLAP=yes, OVERLAP=no";
	else
		*why = spec_parse(&job->spec, &text);
	if (!*why && *text == '\0')
		*why = "no command";
	if (!*why && spec_next(&job->spec, time(NULL)) == NEVER)
		*why = "there is no such day";
	strcpy(job->command, text);
	job->timeout = *timeout;
	job->overlap = *overlap;
	*jobs_end = job;
	jobs_end = &job->next;
	return !*why;
}

static bool read_table(const char *name)
{
	FILE *table = fopen(name, "re");
	bool overlap = true, right = table != NULL;
	int64_t timeout = 0;
	const char *why = NULL;
	size_t size = 0;
	char *line = NULL;

	if (!table)
		fprintf(stderr, "cron: %s: %s\n", name, strerror(errno));
	for (int n = 1; table && getline(&line, &size, table) >= 0; n++, why = NULL)
		if (!read_line(line, &timeout, &overlap, &why)) {
			fprintf(stderr, "%s:%d: %s\n", name, n, why);
			right = false;
		}
	free(line);
	if (table)
		fclose(table);
	return right;
}

/* -------------------------------------------------------------- commands */

/* A group of its own, no input, and none of goro's signal mask. 0 or an errno. */
static int spawn(struct run *run, char *command)
{
	char *argv[] = { "sh", "-c", command, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	int err;

	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	err = posix_spawn(&run->pid, "/bin/sh", &files, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	if (err == 0 && (run->pidfd = (int)syscall(SYS_pidfd_open, run->pid, 0)) < 0) {
		err = errno;
		kill(-run->pid, SIGKILL);
		waitpid(run->pid, NULL, 0);
	}
	return err;
}

/* Waits for the command's end, not longer than it may take, and tells main. Until main
 * has waited for the process its number is no other's, so it is safe to kill. */
static void watch(struct run *run, goro_chan *ended)
{
	int64_t timeout = run->job->timeout;

	timeout = timeout ? goro_deadline_in(timeout) : GORO_FOREVER;
	if (goro_poll(run->pidfd, POLLIN, timeout) == 0) {
		run->timed_out = true;
		kill(-run->pid, SIGTERM);
		goro_poll(run->pidfd, POLLIN, goro_deadline_in(KILL_AFTER));
		kill(-run->pid, SIGKILL);	/* also what the command left behind */
		goro_poll(run->pidfd, POLLIN, GORO_FOREVER);
	}
	goro_chan_send(ended, &run);
}

static void start_job(struct job *job, goro_chan *ended)
{
	struct run *run = calloc(1, sizeof *run);
	int err = run ? spawn(run, job->command) : ENOMEM;

	if (err) {
		printf("%s %s: %s\n", show(now), strerror(err), job->command);
		free(run);
		return;
	}
	printf("%s start: %s\n", show(now), job->command);
	run->job = job;
	run->next = runs;
	runs = run;
	job->running++;
	go(watch, run, ended);
}

static void end_run(struct run *run)
{
	struct run **at = &runs;
	int status;

	while (*at != run)
		at = &(*at)->next;
	*at = run->next;
	run->job->running--;
	goro_close(run->pidfd);
	waitpid(run->pid, &status, 0);		/* at once: it has ended */
	printf("%s %s, %s %d: %s\n", show(now), run->timed_out ? "timed out" : "end",
	       WIFSIGNALED(status) ? "signal" : "status",
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
	       run->job->command);
	free(run);
}

/* ------------------------------------------------------------- scheduler */

/* Runs what is due; what is due again, it counts from now. */
static void tick(time_t to, goro_chan *ended)
{
	bool jumped = now != 0 && (to < now - JUMP_MAX || to > now + JUMP_MAX);

	if (jumped)
		printf("%s the clock was set\n", show(to));
	now = to;
	for (struct job *job = jobs; job; job = job->next) {
		if (jumped || job->due == 0) {
			job->due = spec_next(&job->spec, now);
		} else if (job->due <= now) {
			if (job->running > 0 && !job->overlap)
				printf("%s still runs: %s\n", show(now), job->command);
			else
				start_job(job, ended);
			job->due = spec_next(&job->spec, now);
		} else if (job->spec.every && job->due > now + job->spec.every) {
			job->due = now + job->spec.every;	/* it went back */
		}
	}
}

static void kill_all(int sig)
{
	for (struct run *run = runs; run; run = run->next)
		kill(-run->pid, sig);
}

/* Until a signal, or the end of a clock, and the end of what runs. Each signal, and each
 * time limit, is the next stage. */
static void schedule(int64_t grace)
{
	enum { RUN, WAIT, TERMINATE, KILL } stage = RUN;
	goro_chan *signals = goro_signal_notify((int[]){ SIGTERM, SIGINT }, 2);
	goro_chan *ended = goro_chan_of(struct run *, 0), *clock = ticks;
	int64_t until = GORO_FOREVER;
	struct run *run;
	bool ticked;
	time_t to;
	int which;

	while (stage == RUN || runs) {
		which = goro_select_until(until, GORO_RECV(ended, &run),
		                          GORO_RECV(signals, NULL),
		                          GORO_RECV_OKP(clock, &to, &ticked));
		if (which == 0) {
			end_run(run);
			continue;
		}
		if (which == 2 && ticked) {
			if (stage == RUN)
				tick(to, ended);
			now = to;
			continue;
		}
		if (which == 2)
			clock = NULL;		/* closed: nothing comes any more */
		if (stage < KILL) {
			stage++;
			until = goro_deadline_in(stage == WAIT ? grace : KILL_AFTER);
			if (stage != WAIT)
				kill_all(stage == TERMINATE ? SIGTERM : SIGKILL);
			if (stage == KILL)
				until = GORO_FOREVER;
		}
	}
	goro_signal_stop(signals);
	goro_chan_unref(signals);
	goro_chan_unref(ended);
}

static void forecast(time_t from, int count)
{
	for (struct job *job = jobs; job; job = job->next)
		for (int i = 0; i < count; i++) {
			job->due = spec_next(&job->spec, i ? job->due : from);
			if (job->due == NEVER)
				break;
			printf("%s %s\n", show(job->due), job->command);
		}
}

static int start(int argc, char **argv)
{
	bool fake = false, known = true;
	int count = 0, grace = 10;
	time_t from = time(NULL);

	for (int option; (option = getopt(argc, argv, "fg:n:")) != -1; )
		switch (option) {
		case 'f': fake = true; break;
		case 'g': grace = atoi(optarg); break;
		case 'n': known &= (count = atoi(optarg)) > 0; break;
		default: known = false; break;
		}
	if (count > 0 && argc == optind + 2)
		known &= (from = read_time(argv[--argc])) != NEVER;
	if (!known || argc != optind + 1 || grace < 0) {
		fputs("usage: cron [-f] [-g GRACE] TABLE\n"
		      "       cron -n COUNT TABLE [TIME]\n", stderr);
		return 2;
	}
	if (!read_table(argv[optind]))
		return 1;
	setlinebuf(stdout);
	if (count > 0) {
		forecast(from, count);
	} else {
		ticks = goro_chan_of(time_t, 0);
		go(fake ? fake_clock : real_clock);
		schedule(grace * GORO_SECOND);
	}
	for (struct job *job; (job = jobs); free(job))
		jobs = job->next;
	return 0;
}
GORO_MAIN(start)
