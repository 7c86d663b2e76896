/*
 * pipeline.c - a pipeline with fan-out and fan-in: the checksums of many files.
 *
 *	find . -type f | pipeline [WORKERS]      like find . -type f | xargs cksum
 *
 *	          paths            sums
 *	source  --------> digest --------> print
 *	(stdin) \-------> digest -------/ (stdout)
 *	         \------> digest ------/
 *
 * All stages are one goro_group. The first error in any of them cancels the group's
 * context, and SIGINT cancels the context above it; every stage waits for that as well
 * as for its channel, and ends. The channels have no room, so nothing runs ahead of
 * the printer.
 *
 * What to look at: `yes /etc/passwd | pipeline | head -n 3` ends, though the source
 * never does; so does `pipeline` at a terminal, by ^C, while it waits for input. Exit
 * status: 0; 1 after an error; 130 after SIGINT; 3 if a goroutine was left behind,
 * which is shown.
 */
#include <fcntl.h>
#include <goro.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Travels from stage to stage; the stage that has it frees it. */
struct file {
	uint32_t sum;
	uint64_t size;
	char path[];
};

static goro_chan *paths, *sums;		/* of struct file * */
static goro_waitgroup digesters;
static uint32_t table[256];

/* <-ctx.Done() beside the send: false if the context was done, and nothing sent. */
static bool pass_on(goro_ctx *ctx, goro_chan *to, struct file **file)
{
	if (goro_select(GORO_SEND(to, file), GORO_RECV(goro_ctx_done(ctx), NULL)) == 0)
		return true;
	free(*file);
	return false;
}

/* What a stage returns. An error that follows from the first one is not reported. */
static int error(goro_ctx *ctx, const char *what, int err)
{
	if (goro_ctx_err(ctx))
		return goro_ctx_cause(ctx);
	fprintf(stderr, "pipeline: %s: %s\n", what, strerror(-err));
	return err;
}

/* ---------------------------------------------------------------- source */

/* Wakes the source, which waits for input and not for the context. */
static void stop_reading(void *unused)
{
	(void)unused;
	goro_set_deadline(STDIN_FILENO, GORO_NOW, GORO_FOREVER);
}

static int send_path(goro_ctx *ctx, const char *line, size_t n)
{
	struct file *file = malloc(sizeof *file + n + 1);

	if (!file)
		return error(ctx, "stdin", -ENOMEM);
	memcpy(file->path, line, n);
	file->path[n] = '\0';
	return pass_on(ctx, paths, &file) ? 0 : goro_ctx_cause(ctx);
}

static int read_lines(goro_ctx *ctx)
{
	char text[PATH_MAX], *end;
	size_t have = 0, length;
	ssize_t n;
	int err;

	while ((n = goro_read(STDIN_FILENO, text + have, sizeof text - have)) > 0) {
		have += (size_t)n;
		while ((end = memchr(text, '\n', have))) {
			length = (size_t)(end - text);
			if (length > 0 && (err = send_path(ctx, text, length)))
				return err;
			have -= length + 1;
			memmove(text, end + 1, have);
		}
		if (have == sizeof text)
			return error(ctx, "stdin", -ENAMETOOLONG);
	}
	if (n < 0)
		return error(ctx, "stdin", (int)n);
	return have > 0 ? send_path(ctx, text, have) : 0;	/* without a newline */
}

static int source(goro_ctx *ctx, void *unused)
{
	goro_ctx_func *stop = goro_ctx_after_func(ctx, stop_reading, unused);
	int err = read_lines(ctx);

	goro_ctx_func_stop(stop);
	goro_chan_close(paths);
	return err;
}

/* ---------------------------------------------------------------- digest */

static void make_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i << 24;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] << 1 ^ (table[i] >> 31 ? 0x04c11db7 : 0);
	}
}

static uint32_t add_byte(uint32_t sum, unsigned char byte)
{
	return sum << 8 ^ table[sum >> 24 ^ byte];
}

/* The checksum of POSIX: the content, then the length, low byte first. */
static int checksum(goro_ctx *ctx, struct file *file)
{
	unsigned char block[32768];
	int fd = goro_open(file->path, O_RDONLY);
	ssize_t n = fd;

	file->sum = 0;
	file->size = 0;
	while (fd >= 0 && !goro_ctx_err(ctx) &&
	       (n = goro_read(fd, block, sizeof block)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			file->sum = add_byte(file->sum, block[i]);
		file->size += (size_t)n;
	}
	if (fd >= 0)
		goro_close(fd);
	for (uint64_t size = file->size; size > 0; size >>= 8)
		file->sum = add_byte(file->sum, (unsigned char)size);
	file->sum = ~file->sum;
	return n < 0 ? error(ctx, file->path, (int)n) : goro_ctx_cause(ctx);
}

static int digest(goro_ctx *ctx, void *unused)
{
	struct file *file;
	int err = 0;

	(void)unused;
	while (err == 0 && goro_chan_recv(paths, &file)) {
		err = checksum(ctx, file);
		if (err)
			free(file);
		else if (!pass_on(ctx, sums, &file))
			err = goro_ctx_cause(ctx);
	}
	goro_waitgroup_done(&digesters);
	return err;
}

/* Fan-in: when the last digester has ended nobody sends any more. */
static int close_sums(goro_ctx *ctx, void *unused)
{
	(void)ctx, (void)unused;
	goro_waitgroup_wait(&digesters);
	goro_chan_close(sums);
	return 0;
}

/* ----------------------------------------------------------------- print */

static int print(goro_ctx *ctx, void *unused)
{
	struct file *file;
	int err = 0;

	(void)unused;
	while (err == 0 && goro_chan_recv(sums, &file)) {
		if (printf("%u %llu %s\n", file->sum, (unsigned long long)file->size,
		           file->path) < 0)
			err = error(ctx, "stdout", -errno);
		free(file);
	}
	return err;
}

/* ------------------------------------------------------------------ main */

static void cancel_on_signal(goro_chan *signals, goro_ctx *ctx)
{
	if (goro_select(GORO_RECV(signals, NULL),
	                GORO_RECV(goro_ctx_done(ctx), NULL)) == 0)
		goro_ctx_cancel_cause(ctx, -EINTR);
	goro_signal_stop(signals);
	goro_chan_unref(signals);
	goro_ctx_unref(ctx);
}

static int start(int argc, char **argv)
{
	int workers = argc > 1 ? atoi(argv[1]) : 2 * goro_gomaxprocs(0), err;
	uint64_t mark = goro_leak_mark();
	goro_ctx *ctx = goro_ctx_with_cancel(goro_ctx_background());
	goro_group *stages = goro_group_make(ctx, 0);

	if (workers < 1 || workers > 10000 || argc > 2) {
		fprintf(stderr, "usage: pipeline [WORKERS] <PATHS\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);	/* print sees the error */
	setlinebuf(stdout);
	make_table();
	paths = goro_chan_of(struct file *, 0);
	sums = goro_chan_of(struct file *, 0);
	go(cancel_on_signal, goro_signal_notify((int[]){ SIGINT }, 1), goro_ctx_ref(ctx));

	goro_waitgroup_add(&digesters, workers);
	for (int i = 0; i < workers; i++)
		goro_group_go(stages, digest, NULL);
	goro_group_go(stages, close_sums, NULL);
	goro_group_go(stages, print, NULL);
	goro_group_go(stages, source, NULL);
	err = goro_group_wait(stages);

	goro_ctx_cancel(ctx);
	goro_ctx_unref(ctx);
	goro_chan_unref(paths);
	goro_chan_unref(sums);
	if (goro_leak_check(mark, GORO_SECOND, stderr) > 0)
		return 3;
	return err == -EINTR ? 130 : err ? 1 : 0;
}
GORO_MAIN(start)
