/*
 * trace.c - goro trace: runs a program with a trace, or reads one, and shows it.
 *
 * trace_file.c reads a file's generations, trace_read.c and trace_order.c its events,
 * trace_model.c makes spans of them. Views are sinks of the model: trace_summary.c with
 * trace_report.c, trace_draw.c, trace_perfetto.c and trace_html.c. A file is read twice:
 * for its figures, which also tell how long it is, and for what is drawn.
 */
#include "trace_view.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client.h"
#include "cmd.h"
#include "program.h"
#include "trace_draw.h"

struct job {
	const char *out, *html, *perfetto;
	double from, to, seconds;
	char **words;			/* the file; or the program and its words */
};

static const char help[] =
	"usage: goro trace [OPTION...] FILE\n"
	"       goro trace [OPTION...] [-o FILE] PID | ADDRESS\n"
	"       goro trace [OPTION...] [-o FILE] PROGRAM [ARGUMENT...]\n"
	"\n"
	"Shows an execution trace: what goro or Go (1.22, 1.23) has written to a file, or\n"
	"what a program does now: one that runs already, or one that is run with\n"
	"GORO_TRACE. That may be a C or C++ file, which is compiled as goro run does.\n"
	CLIENT_TARGETS
	"\n"
	"    -o FILE           keeps the trace of the program\n"
	"    --seconds N       traces a running program for N seconds, instead of 1\n"
	"    --html FILE       writes a page with a timeline, for a browser\n"
	"    --perfetto FILE   writes JSON for ui.perfetto.dev and chrome://tracing\n"
	"    --from SECONDS    shows what follows that time\n"
	"    --to SECONDS      shows what comes before that time\n"
	"\n"
	"    goro trace ./server\n"
	"    goro trace --seconds 2 $(pidof server)\n"
	"    goro trace --html page.html prog.trace\n";

/* --------------------------------------------------------------------- views */

static void set_part(struct trace_model *t, const struct job *job)
{
	t->from = (int64_t)(job->from * 1e9);
	t->to = job->to > 0 ? (int64_t)(job->to * 1e9) : INT64_MAX;
}

static void print_views(struct trace_model *t, struct summary *s, const char *name)
{
	struct trace_sink sink;
	struct draw d;

	draw_begin(&d, t, s, &sink);
	model_read(t, &sink);
	report_print(t, s, name);
	draw_print(&d);
	draw_free(&d);
}

/* What could not be read is told behind what could. */
static int show(void *arg, const char *path, const char *name)
{
	const struct job *job = arg;
	struct trace_model t;
	struct trace_sink sink;
	struct summary s;
	bool good;

	if (!model_open(&t, path)) {
		say("%s %s", path, t.reader.file.why);
		model_close(&t);
		return STATUS_FAILED;
	}
	set_part(&t, job);
	summary_collect(&s, &t, &sink);
	good = model_read(&t, &sink);
	if (!job->html && !job->perfetto)
		print_views(&t, &s, name);
	if (job->html)
		html_write(&t, &s, name, job->html);
	if (job->perfetto)
		perfetto_write(&t, job->perfetto);
	if (!good)
		say("%s: %s; shown is what comes before", path, t.reader.file.why);
	else if (t.reader.file.cut)
		say("%s ends in the middle: the last generation is not whole and left out", path);
	summary_free(&s);
	model_close(&t);
	return good ? 0 : STATUS_FAILED;
}

/* A running program's: asked for as from its debug server. */
static int ask_and_show(const struct job *job)
{
	struct client *c = client_open(job->words[0]);
	char *query = format("/debug/pprof/trace?seconds=%g", job->seconds), *bytes, *path;
	size_t n;
	int status;

	if (!c)
		return STATUS_FAILED;
	client_patience(c, job->seconds);
	bytes = client_get(c, query, false, &n);
	client_close(c);
	free(query);
	if (!bytes)
		return STATUS_FAILED;
	path = job->out ? format("%s", job->out) : temporary_file("trace");
	client_keep(path, bytes, n);
	free(bytes);
	status = show((void *)job, path, job->out ? job->out : job->words[0]);
	if (!job->out)
		unlink(path);
	free(path);
	return status;
}

/* --------------------------------------------------------------------- words */

static bool parse_seconds(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	return end != text && !*end && *seconds >= 0 && *seconds < 1e9;
}

/* False: they make no sense. */
static bool parse(struct job *job, int argc, char **argv)
{
	static const struct option options[] = {
		{ "html", required_argument, NULL, 'h' }, { "perfetto", required_argument, NULL, 'p' },
		{ "from", required_argument, NULL, 'f' }, { "to", required_argument, NULL, 't' },
		{ "seconds", required_argument, NULL, 's' }, { 0 },
	};
	bool good = true;
	int option;

	while ((option = getopt_long(argc, argv, "+o:", options, NULL)) != -1)
		switch (option) {
		case 'o': job->out = optarg; break;
		case 'h': job->html = optarg; break;
		case 'p': job->perfetto = optarg; break;
		case 'f': good = good && parse_seconds(optarg, &job->from); break;
		case 't': good = good && parse_seconds(optarg, &job->to) && job->to > 0; break;
		case 's': good = good && parse_seconds(optarg, &job->seconds) && job->seconds > 0 && job->seconds <= 3600; break;
		default: return false;
		}
	job->words = argv + optind;
	return good && optind < argc && (job->to == 0 || job->to > job->from);
}

int cmd_trace(int argc, char **argv)
{
	struct job job = { .seconds = 1 };

	if (asks_for_help(argc, argv)) {
		fputs(help, stdout);
		return 0;
	}
	if (!parse(&job, argc, argv)) {
		fputs(help, stderr);
		return STATUS_USAGE;
	}
	if (client_is_target(job.words[0]) && !job.words[1])
		return ask_and_show(&job);
	if (!is_trace_file(job.words[0]) && is_program(job.words[0]))
		return program_run(&(struct program){ "GORO_TRACE", "trace", job.out, job.words, show, &job });
	if (job.words[1] || job.out) {
		fputs(help, stderr);
		return STATUS_USAGE;
	}
	return show(&job, job.words[0], job.words[0]);
}
