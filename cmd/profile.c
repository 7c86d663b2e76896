/*
 * profile.c - goro profile: makes a profile of a program, or reads one, and shows it.
 *
 * inflate.c unpacks it, profile_read.c reads it, profile_tree.c adds it up;
 * profile_report.c and profile_html.c show it. It comes from a file, from a program that
 * is run with GORO_CPUPROFILE, or from a running one, which is asked as its debug server
 * would be.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "cmd.h"
#include "profile_view.h"
#include "program.h"

#define SECONDS_MAX 3600
#define TOP_BOTH    15		/* rows, where the tree follows */
#define LEAST_BOTH  0.02	/* of the whole, where the functions come first */
#define LEAST_TREE  0.005

struct job {
	const char *out, *html, *kind, *value;
	double seconds;
	long top;		/* rows; 0: not asked for */
	bool tree;
	char **words;		/* the file, the process; or the program and its words */
};

/* The words for --kind, and where a program has them. */
static const struct kind {
	const char *name, *path;
	const char *why_empty;	/* why there may be no samples */
} kinds[] = {
	{ "cpu", "/debug/pprof/profile", "it used no CPU time" },
	{ "goroutine", "/debug/pprof/goroutine", "it has no goroutines" },
	{ "block", "/debug/pprof/block", "the program has to switch it on: goro_profile_block_rate(3)" },
	{ "mutex", "/debug/pprof/mutex", "the program has to switch it on: goro_profile_mutex_fraction(3)" },
	{ "leak", "/debug/pprof/goroutineleak", "no goroutine waits for what nothing can reach" },
	{ "threads", "/debug/pprof/threadcreate", "it has made no threads" },
};

#define N_KINDS (sizeof kinds / sizeof *kinds)

static const char help[] =
	"usage: goro profile [OPTION...] FILE\n"
	"       goro profile [OPTION...] PID | ADDRESS\n"
	"       goro profile [OPTION...] PROGRAM [ARGUMENT...]\n"
	"\n"
	"Shows a profile: where CPU time went, or where goroutines are. It is a file in\n"
	"the format of pprof, as goro and Go write it; or it is made now, of a running\n"
	"program or of one that is run with GORO_CPUPROFILE. That may be a C or C++ file,\n"
	"which is compiled as goro run does.\n"
	CLIENT_TARGETS
	"\n"
	"    --top N           the N functions that have most\n"
	"    --tree            the tree of calls\n"
	"    --html FILE       writes a page with a flame graph, for a browser\n"
	"    -o FILE           keeps the profile\n"
	"    --kind KIND       of a running program: cpu, goroutine, block, mutex, leak,\n"
	"                      threads\n"
	"    --seconds N       of a running program: how long its CPU time is watched; 10\n"
	"    --value NAME      which of the profile's values is shown, as alloc_space;\n"
	"                      otherwise the last\n"
	"\n"
	"    goro profile ./server\n"
	"    goro profile --html page.html cpu.pb.gz\n"
	"    goro profile --kind goroutine $(pidof server)\n";

/* ------------------------------------------------------------------- showing */

static void print_views(const struct job *job, const struct tree *t, const char *name)
{
	bool both = !job->top && !job->tree;

	report_head(t->profile, name);
	if (both || job->top)
		report_top(t, both ? TOP_BOTH : (size_t)job->top);
	if (t->sum > 0 && (both || job->tree))
		report_tree(t, both ? LEAST_BOTH : LEAST_TREE);
}

/* The values that the profile has, for an error. */
static void say_values(const struct profile *p)
{
	fputs("goro: its values are", stderr);
	for (size_t i = 0; i < p->types; i++)
		fprintf(stderr, "%s %s", i ? "," : "", text_of(p->names, p->type[i].what));
	fputc('\n', stderr);
}

static int show_profile(const struct job *job, struct profile *p, bool good, const char *name)
{
	struct tree t;

	if (!good) {
		say("%s %s", name, p->why);
		if (job->value && p->types)
			say_values(p);
		profile_free(p);
		return STATUS_FAILED;
	}
	if (job->html) {
		tree_make(&t, p, false);
		flame_write(&t, name, job->html);
		tree_free(&t);
	}
	if (!job->html || job->top || job->tree) {
		tree_make(&t, p, true);
		print_views(job, &t, name);
		tree_free(&t);
	}
	profile_free(p);
	return 0;
}

static int show(void *arg, const char *path, const char *name)
{
	const struct job *job = arg;
	struct profile p;
	bool good = profile_read_file(&p, path, job->value);

	return show_profile(job, &p, good, name);
}

/* ------------------------------------------------------------ running programs */

static const struct kind *kind_of(const char *name)
{
	for (size_t i = 0; i < N_KINDS; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

static char *ask(const struct job *job, const struct kind *kind, size_t *n)
{
	struct client *c = client_open(job->words[0]);
	bool is_cpu = kind == &kinds[0];
	char *path, *bytes;

	if (!c)
		return NULL;
	path = is_cpu ? format("%s?seconds=%g", kind->path, job->seconds) : format("%s", kind->path);
	if (is_cpu && isatty(STDERR_FILENO))
		fprintf(stderr, "its CPU time, for %g s ...\n", job->seconds);
	client_patience(c, job->seconds);
	bytes = client_get(c, path, false, n);
	client_close(c);
	free(path);
	return bytes;
}

static int ask_and_show(const struct job *job)
{
	const struct kind *kind = kind_of(job->kind ? job->kind : "cpu");
	struct profile p;
	size_t n;
	char *bytes = ask(job, kind, &n);
	bool good;
	int status;

	if (!bytes)
		return STATUS_FAILED;
	if (job->out)
		client_keep(job->out, bytes, n);
	good = profile_read(&p, (const uint8_t *)bytes, n, job->value);
	free(bytes);
	if (good && p.samples == 0)
		say("the profile is empty: %s", kind->why_empty);
	status = show_profile(job, &p, good, job->words[0]);
	return status;
}

/* --------------------------------------------------------------------- words */

static bool parse_number(const char *text, double most, double *n)
{
	char *end;

	*n = strtod(text, &end);
	return end != text && !*end && *n > 0 && *n <= most;
}

static bool parse_top(struct job *job, const char *text)
{
	double n;

	if (!parse_number(text, 1e6, &n) || n != (double)(long)n)
		return false;
	job->top = (long)n;
	return true;
}

/* False: they make no sense. */
static bool parse(struct job *job, int argc, char **argv)
{
	static const struct option options[] = {
		{ "top", required_argument, NULL, 't' }, { "tree", no_argument, NULL, 'r' },
		{ "html", required_argument, NULL, 'h' }, { "kind", required_argument, NULL, 'k' },
		{ "seconds", required_argument, NULL, 's' }, { "value", required_argument, NULL, 'v' }, { 0 },
	};
	bool good = true;
	int option;

	while ((option = getopt_long(argc, argv, "+o:", options, NULL)) != -1)
		switch (option) {
		case 'o': job->out = optarg; break;
		case 't': good = good && parse_top(job, optarg); break;
		case 'r': job->tree = true; break;
		case 'h': job->html = optarg; break;
		case 'k': job->kind = optarg; good = good && kind_of(optarg); break;
		case 's': good = good && parse_number(optarg, SECONDS_MAX, &job->seconds); break;
		case 'v': job->value = optarg; break;
		default: return false;
		}
	job->words = argv + optind;
	return good && optind < argc;
}

static int usage(void)
{
	fputs(help, stderr);
	return STATUS_USAGE;
}

int cmd_profile(int argc, char **argv)
{
	struct job job = { .seconds = 10 };

	if (asks_for_help(argc, argv)) {
		fputs(help, stdout);
		return 0;
	}
	if (!parse(&job, argc, argv))
		return usage();
	if (client_is_target(job.words[0]))
		return job.words[1] ? usage() : ask_and_show(&job);
	if (job.kind && strcmp(job.kind, "cpu") != 0) {
		say("--kind %s is asked of a running program: name its process id or address", job.kind);
		return STATUS_USAGE;
	}
	if (!is_profile_file(job.words[0]) && is_program(job.words[0]))
		return program_run(&(struct program){ "GORO_CPUPROFILE", "profile", job.out, job.words, show, &job });
	return job.words[1] || job.out ? usage() : show(&job, job.words[0], job.words[0]);
}
