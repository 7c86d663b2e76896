/*
 * explain.c - goro explain: a small program is run, and its trace is told step by step.
 *
 * A scene is a program of its own in cmd/scene/. It is embedded as text, and compiled
 * into the command, where its main is called scene_ and its name. To run one, the command
 * starts itself with --run and GORO_TRACE, so that neither a compiler nor the library is
 * needed. explain_steps.c makes steps of the trace, explain_words.c tells them,
 * explain_text.c and explain_screen.c show them.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "embed.h"
#include "explain_view.h"
#include "program.h"
#include "screen.h"
#include "terminal.h"
#include "trace_view.h"

/* X(name, processors, title, what to look for in at most 78 columns) */
#define SCENES(X)                                                                             \
	X(spawn, 2, "four goroutines, and how they get onto processors",                      \
	  "They get into their starter's queue; the last one is first. An idle P helps.")     \
	X(steal, 2, "one processor has all the work: the other steals",                       \
	  "main never stops: only the other P can run what is in the queue.")                 \
	X(channel, 1, "values are handed from goroutine to goroutine",                        \
	  "The first at the channel waits; the second hands over and makes it ready.")   \
	X(call, 1, "a call blocks, and its processor goes on without it",                     \
	  "No call of goro announced it: sysmon finds the thread asleep, and hands P0 on.")    \
	X(hog, 1, "a goroutine that never stops is preempted",                                \
	  "A signal stops it at the end of its slice. It keeps its thread, not P0.")          \
	X(poll, 1, "a goroutine waits for a pipe, and no thread with it",                     \
	  "A thread without work sleeps in the poller, which wakes for pipes and timers.")

#define X(name, procs, title, look)                  \
	int scene_##name(int argc, char **argv);     \
	EMBED(source_##name, "scene/" #name ".c")
SCENES(X)
#undef X

static const struct scene {
	const char *name, *procs, *title, *look, *source;
	int (*run)(int argc, char **argv);
} scenes[] = {
#define X(name, procs, title, look) { #name, #procs, title, look, source_##name, scene_##name },
	SCENES(X)
#undef X
};

#define N_SCENES (sizeof scenes / sizeof *scenes)

struct job {
	const char *html, *out;
	double from, to;		/* seconds */
	const struct scene *scene;	/* NULL: not one of ours */
	bool on_terminal, list, source;
	/* the terminal is the program's until it has ended */
	bool after_program;
	char **words;
	enum explain_next next;
};

static const char help[] =
	"usage: goro explain [OPTION...] [SCENE...]\n"
	"       goro explain [OPTION...] FILE\n"
	"       goro explain [OPTION...] PROGRAM [ARGUMENT...]\n"
	"\n"
	"Runs a small program and tells, step by step, what goroutines (G), threads (M)\n"
	"and processors (P) did: which one ran, waited, was stolen, was preempted. It\n"
	"is the trace of a real run, new each time. FILE is a trace (goro trace -o);\n"
	"PROGRAM is one of yours.\n"
	"\n"
	"    --list            the scenes\n"
	"    --source          the programs of the scenes\n"
	"    --html FILE       writes a page with the timeline of it, for a browser\n"
	"    -o FILE           keeps the trace\n"
	"    --from SECONDS    tells what follows that time\n"
	"    --to SECONDS      tells what comes before that time\n"
	"\n"
	"On a terminal: the space bar runs it, the arrow keys go step by step, n and p to\n"
	"the next scene and the one before, s shows its program, q quits. Elsewhere it is\n"
	"plain text.\n"
	"\n"
	"    goro explain\n"
	"    goro explain steal call\n"
	"    goro explain --source hog >hog.c && goro run hog.c\n";

/* ------------------------------------------------------------------- showing */

static void print_title(const struct job *job, const char *name)
{
	if (!job->scene) {
		printf("%s%s%s\n\n", colour(BOLD), name, colour(PLAIN));
		return;
	}
	printf("%s%s: %s%s\n", colour(BOLD), job->scene->name, job->scene->title, colour(PLAIN));
	printf("%s%s\ngoro explain --source %s prints the program. It runs with GOMAXPROCS=%s.%s\n\n", colour(DIM),
	       job->scene->look, job->scene->name, job->scene->procs, colour(PLAIN));
}

static void show_steps(struct job *job, const struct steps *s, const char *name)
{
	char *title = job->scene ? format("%s: %s", job->scene->name, job->scene->title) : format("%s", name);

	if (job->on_terminal) {
		job->next = explain_show(s, title, job->scene ? job->scene->look : NULL);
	} else {
		print_title(job, name);
		explain_print(s);
	}
	free(title);
}

/* The page: as goro trace writes it. */
static void write_page(struct trace_model *t, const struct job *job, const char *name)
{
	struct trace_sink sink;
	struct summary s;

	summary_collect(&s, t, &sink);
	model_read(t, &sink);
	html_write(t, &s, job->scene ? job->scene->name : name, job->html);
	summary_free(&s);
}

static int show(void *arg, const char *path, const char *name)
{
	struct job *job = arg;
	struct trace_model t;
	struct steps s;
	bool good;

	if (!model_open(&t, path)) {
		say("%s %s", path, t.reader.file.why);
		model_close(&t);
		return STATUS_FAILED;
	}
	t.from = (int64_t)(job->from * 1e9);
	t.to = job->to > 0 ? (int64_t)(job->to * 1e9) : INT64_MAX;
	if (job->html) {
		write_page(&t, job, name);
		model_close(&t);
		return 0;
	}
	good = steps_read(&s, &t);
	if (job->on_terminal && job->after_program)
		terminal_take();
	show_steps(job, &s, name);
	if (job->on_terminal && job->after_program)
		terminal_leave();
	if (!good)
		say("%s: %s; told is what comes before", path, t.reader.file.why);
	steps_free(&s);
	model_close(&t);
	return good ? 0 : STATUS_FAILED;
}

/* ------------------------------------------------------------------- scenes */

static const struct scene *scene_of(const char *name)
{
	for (size_t i = 0; i < N_SCENES; i++)
		if (strcmp(scenes[i].name, name) == 0)
			return &scenes[i];
	return NULL;
}

static int run_scene(struct job *job, const struct scene *scene)
{
	char *words[] = { "/proc/self/exe", "explain", "--run", (char *)scene->name, NULL };

	job->scene = scene;
	setenv("GORO_MAXPROCS", scene->procs, 1);
	unsetenv("GORO_DEBUG");
	return program_run(&(struct program){ "GORO_TRACE", "trace", job->out, words, show, job });
}

/* A line of the program; where the next one begins. A tab is four columns. */
static const char *put_source_line(const char *line, int columns)
{
	int column = 0;

	for (; *line && *line != '\n'; line++) {
		int wide = *line == '\t' ? 4 - column % 4 : 1;

		if (column + wide < columns)
			printf("%*s", *line == '\t' ? wide : 0, "");
		if (column + wide < columns && *line != '\t')
			putchar(*line);
		column += wide;
	}
	fputs("\033[K\r\n", stdout);
	return *line ? line + 1 : line;
}

/* Between two screens: the program, a screen at a time, and then its steps again. */
static void show_source(const struct scene *scene)
{
	int columns, rows, key = KEY_NONE;

	for (const char *line = scene->source; *line && key != 'q' && !terminal_ended();) {
		terminal_size(&columns, &rows);
		fputs("\033[H", stdout);
		for (int i = 0; i < rows - 2 && *line; i++)
			line = put_source_line(line, columns);
		printf("\033[J\033[%d;1H%s%s%s", rows, colour(DIM), *line ? " any key: more   q: back" : " any key: back",
		       colour(PLAIN));
		fflush(stdout);
		key = terminal_key(3600000);
	}
}

/* The reader goes from scene to scene. */
static int show_scenes(struct job *job, const struct scene *const *list, size_t n)
{
	int status = 0;

	for (size_t i = 0; status == 0 && !terminal_ended();) {
		status = run_scene(job, list[i]);
		if (job->next == EXPLAIN_QUIT || status != 0)
			break;
		if (job->next == EXPLAIN_SOURCE)
			show_source(list[i]);
		else
			i = (i + (job->next == EXPLAIN_NEXT ? 1 : n - 1)) % n;
	}
	return status;
}

static int print_scenes(struct job *job, const struct scene *const *list, size_t n)
{
	int status = 0;

	for (size_t i = 0; i < n && status == 0; i++) {
		if (job->source) {
			fputs(list[i]->source, stdout);
		} else {
			status = run_scene(job, list[i]);
			if (i + 1 < n && !job->html)
				putchar('\n');
		}
	}
	return status;
}

static int explain_scenes(struct job *job)
{
	const struct scene *list[N_SCENES];
	size_t n = 0;
	int status;

	for (char **word = job->words; *word && n < N_SCENES; word++) {
		list[n] = scene_of(*word);
		if (!list[n++]) {
			say("no such scene: %s (goro explain --list)", *word);
			return STATUS_USAGE;
		}
	}
	for (; !*job->words && n < N_SCENES; n++)
		list[n] = &scenes[n];
	if ((job->html || job->out) && n != 1) {
		say("name one scene, for a file");
		return STATUS_USAGE;
	}
	if (!job->on_terminal)
		return print_scenes(job, list, n);
	terminal_take();
	status = show_scenes(job, list, n);
	terminal_leave();
	return status;
}

static int list_scenes(void)
{
	for (size_t i = 0; i < N_SCENES; i++)
		printf("    %-10s %s\n", scenes[i].name, scenes[i].title);
	return 0;
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
		{ "html", required_argument, NULL, 'h' }, { "list", no_argument, NULL, 'l' },
		{ "source", no_argument, NULL, 's' }, { "from", required_argument, NULL, 'f' },
		{ "to", required_argument, NULL, 't' }, { 0 },
	};
	bool good = true;
	int option;

	while ((option = getopt_long(argc, argv, "+o:", options, NULL)) != -1)
		switch (option) {
		case 'o': job->out = optarg; break;
		case 'h': job->html = optarg; break;
		case 'l': job->list = true; break;
		case 's': job->source = true; break;
		case 'f': good = good && parse_seconds(optarg, &job->from); break;
		case 't': good = good && parse_seconds(optarg, &job->to) && job->to > 0; break;
		default: return false;
		}
	job->words = argv + optind;
	return good && (job->to == 0 || job->to > job->from);
}

/* A trace, or a program of the reader's. */
static int explain_other(struct job *job)
{
	int status;

	if (!is_trace_file(job->words[0]) && is_program(job->words[0])) {
		job->after_program = true;
		return program_run(&(struct program){ "GORO_TRACE", "trace", job->out, job->words, show, job });
	}
	if (job->words[1] || job->out || job->source) {
		fputs(help, stderr);
		return STATUS_USAGE;
	}
	if (job->on_terminal)
		terminal_take();
	status = show(job, job->words[0], job->words[0]);
	if (job->on_terminal)
		terminal_leave();
	return status;
}

static bool names_scenes(char **words)
{
	return !words[0] || scene_of(words[0]) || (access(words[0], F_OK) != 0 && !strchr(words[0], '/') &&
	                                           !strchr(words[0], '.'));
}

int cmd_explain(int argc, char **argv)
{
	struct job job = { 0 };

	if (asks_for_help(argc, argv)) {
		fputs(help, stdout);
		return 0;
	}
	if (argc == 3 && strcmp(argv[1], "--run") == 0 && scene_of(argv[2]))
		return scene_of(argv[2])->run(1, argv + 2);
	if (!parse(&job, argc, argv)) {
		fputs(help, stderr);
		return STATUS_USAGE;
	}
	if (job.list)
		return list_scenes();
	job.on_terminal = isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && !job.source && !job.html;
	return names_scenes(job.words) ? explain_scenes(&job) : explain_other(&job);
}
