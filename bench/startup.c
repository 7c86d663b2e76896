/*
 * startup - a program that starts one goroutine, hears from it and ends: the time
 * to run it, from outside, and the size of what is loaded of its file.
 *
 * `bench_startup hello` is that program; `bench_startup` measures it, and
 * `bench_startup COMMAND` measures another: the runner has the peers' programs
 * measured by this one, so that all are started in the same way.
 */
#include "bench.h"

#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define STARTS 10               /* per round */

static void greeter(goro_chan *c)
{
	int procs = goro_gomaxprocs(0);

	goro_chan_send(c, &procs);
	goro_chan_unref(c);
}

static int hello(int argc, char **argv)
{
	goro_chan *c = goro_chan_of(int, 0);
	int procs;

	(void)argc, (void)argv;
	BENCH_GO(greeter, goro_chan_ref(c));
	goro_chan_recv(c, &procs);
	goro_chan_unref(c);
	printf("hello from %d\n", procs);
	return 0;
}

/* ------------------------------------------------------------ from outside */

extern char **environ;
static char **command;

/* Runs the command with its output going to out, and checks that it ended well. */
static void run_command(int out)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (posix_spawn(&pid, command[0], &actions, NULL, command, environ) != 0)
		measure_fail("cannot start the program");
	posix_spawn_file_actions_destroy(&actions);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		measure_fail("the program did not end with status 0");
}

static uint64_t startup_round(void)
{
	static int null = -1;

	if (null < 0)
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	for (int i = 0; i < STARTS; i++)
		run_command(null);
	return STARTS;
}

/* What the program says, once: the number of processors it found. */
static int ask_procs(void)
{
	int ends[2], procs;
	FILE *f;

	if (pipe2(ends, O_CLOEXEC) != 0)
		measure_fail("no pipe");
	run_command(ends[1]);
	close(ends[1]);
	f = fdopen(ends[0], "r");
	if (!f || fscanf(f, "hello from %d", &procs) != 1)
		measure_fail("the program did not say hello");
	fclose(f);
	return procs;
}

/* Bytes of the file that are mapped to run it: without what strip would drop. */
static int64_t loaded_bytes(const char *path)
{
	int64_t bytes = 0;
	Elf64_Ehdr header;
	FILE *f = fopen(path, "rb");

	if (!f || fread(&header, sizeof header, 1, f) != 1)
		measure_fail("cannot read the program's file");
	fseek(f, (long)header.e_phoff, SEEK_SET);
	for (int i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr segment;

		if (fread(&segment, sizeof segment, 1, f) != 1)
			measure_fail("cannot read the program's file");
		if (segment.p_type == PT_LOAD)
			bytes += (int64_t)segment.p_filesz;
	}
	fclose(f);
	return bytes;
}

int main(int argc, char **argv)
{
	static char *self[] = { "/proc/self/exe", "hello", NULL };
	struct measurement m;
	int procs;

	if (argc == 2 && strcmp(argv[1], "hello") == 0)
		return goro_run(hello, argc, argv);
	command = argc > 1 ? argv + 1 : self;
	procs = ask_procs();
	m = measure(startup_round, STARTS * 1e3);
	measure_report(procs, "startup.time", m.ns_per_op, "us", "ran");
	measure_report(procs, "startup.size", (double)loaded_bytes(command[0]) / 1e3,
	               "KB", "ran");
	return 0;
}
