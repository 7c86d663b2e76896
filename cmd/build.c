/*
 * build.c - goro run, goro build.
 *
 * A program is compiled and linked with the static library that belongs to this command,
 * by $CC or $CXX, or cc and c++. The words are the sources, then what the program gets,
 * then, behind "--", what the compiler gets.
 *
 * goro run keeps what it has compiled in a cache, $XDG_CACHE_HOME/goro or ~/.cache/goro,
 * and runs it from there. The name in the cache is a hash of all that the result depends
 * on: the preprocessed sources, and so every header; the compiler and its flags; the
 * library. An entry is written beside its place and then renamed, so two runs at once
 * do no harm. One that was not used for MONTH_S is removed. Where there is no cache (no
 * HOME, a read-only file system) a folder in $TMPDIR serves for the one run.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"

#define MONTH_S (30 * 24 * 3600)

/* What was asked for. */
struct job {
	struct words sources, args, flags;
	const char *out;	/* -o, of build */
	bool cxx;
	bool calls;		/* --calls: with the library goro-calls */
};

/* ------------------------------------------------------------------ words */

static bool has_ending(const char *name, const char *endings)
{
	const char *dot = strrchr(name, '.');
	const char *at = dot ? strstr(endings, dot) : NULL;

	return at && at[strlen(dot)] == ' ';
}

static bool is_cxx(const char *name)
{
	return has_ending(name, ".cc .cpp .cxx .C .c++ ");
}

static bool is_source(const char *name)
{
	return has_ending(name, ".c .S .o .a ") || is_cxx(name);
}

/* The first words that are sources; then those for the program; behind "--" the flags. */
static struct job parse(int argc, char **argv, bool takes_out)
{
	struct job job = { 0 };
	int i = 1;

	for (; i < argc; i++) {
		if (takes_out && strcmp(argv[i], "-o") == 0 && i + 1 < argc)
			job.out = argv[++i];
		else if (job.sources.n == 0 && strcmp(argv[i], "--calls") == 0)
			job.calls = true;
		else if (is_source(argv[i]))
			words_add(&job.sources, argv[i]);
		else
			break;
		job.cxx = job.cxx || is_cxx(argv[i]);
	}
	for (; i < argc && strcmp(argv[i], "--") != 0; i++)
		words_add(&job.args, argv[i]);
	for (i++; i < argc; i++)
		words_add(&job.flags, argv[i]);
	return job;
}

/* --------------------------------------------------------------- compiler */

static const char *setting(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

/* The compiler and the flags that every step gets. */
static struct words compiler(const struct job *job, const struct place *place)
{
	struct words w = { 0 };

	words_split(&w, job->cxx ? setting("CXX", "c++") : setting("CC", "cc"));
	words_split(&w, "-O2 -g -Wall -fstack-clash-protection");
	words_add(&w, format("-I%s", place->include));
	for (size_t i = 0; i < job->flags.n; i++)
		words_add(&w, job->flags.at[i]);
	return w;
}

/* Before the program's own libraries, so that it stands before libc for them, too. */
static void add_calls(struct words *w, const struct place *place)
{
	char *calls = format("%s/libgoro-calls.so", place->calls_folder);

	if (access(calls, R_OK) != 0)
		die("--calls: there is no %s", calls);
	words_add(w, "-Wl,--push-state,--no-as-needed");
	words_add(w, calls);
	words_add(w, "-Wl,--pop-state");
	words_add(w, format("-Wl,-rpath,%s", place->calls_folder));
}

/* Compiles and links into out. False: the compiler has said why not. */
static bool compile(const struct job *job, const struct place *place, const char *out)
{
	struct words w = compiler(job, place);

	words_add(&w, "-o");
	words_add(&w, out);
	for (size_t i = 0; i < job->sources.n; i++)
		words_add(&w, job->sources.at[i]);
	if (job->calls)
		add_calls(&w, place);
	words_add(&w, place->library);
	words_add(&w, "-pthread");
	/* Again: a -l among them has to come behind the sources. */
	for (size_t i = 0; i < job->flags.n; i++)
		if (strncmp(job->flags.at[i], "-l", 2) == 0)
			words_add(&w, job->flags.at[i]);
	return spawn(&w, -1) == 0;
}

/* ------------------------------------------------------------------- hash */

/* FNV-1a with 128 bits. */
typedef unsigned __int128 hash;
#define HASH_BASIS (((hash)0x6c62272e07bb0142 << 64) | 0x62b821756295c58d)
#define HASH_PRIME (((hash)1 << 88) | 0x13b)

static void hash_bytes(hash *h, const void *data, size_t n)
{
	const unsigned char *at = data;

	for (size_t i = 0; i < n; i++)
		*h = (*h ^ at[i]) * HASH_PRIME;
}

static void hash_words(hash *h, const struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		hash_bytes(h, w->at[i], strlen(w->at[i]) + 1);
}

static bool hash_file(hash *h, int fd)
{
	char buf[65536];
	ssize_t n;

	lseek(fd, 0, SEEK_SET);
	while ((n = read(fd, buf, sizeof buf)) > 0)
		hash_bytes(h, buf, (size_t)n);
	return n == 0;
}

static bool hash_named(hash *h, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 && hash_file(h, fd);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* A file without a name, for what the preprocessor writes. */
static int scratch_file(void)
{
	char path[] = "/tmp/goro-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0)
		die("cannot make a file in /tmp: %s", strerror(errno));
	unlink(path);
	return fd;
}

/* All that the program depends on. False: the preprocessor has said what is wrong. */
static bool hash_job(const struct job *job, const struct place *place, hash *h)
{
	struct words w = compiler(job, place);
	size_t common = w.n;
	int fd = scratch_file();
	bool ok = true;

	*h = HASH_BASIS;
	hash_words(h, &w);
	if (job->calls)
		hash_bytes(h, place->calls_folder, strlen(place->calls_folder) + 1);
	words_add(&w, "-E");
	for (size_t i = 0; ok && i < job->sources.n; i++) {
		const char *source = job->sources.at[i];

		hash_bytes(h, source, strlen(source) + 1);
		if (has_ending(source, ".o .a ")) {
			ok = hash_named(h, source);
			continue;
		}
		w.n = common + 1;
		words_add(&w, source);
		ok = ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0 && spawn(&w, fd) == 0 &&
		     hash_file(h, fd);
	}
	w.n = common;
	words_add(&w, "--version");
	ok = ok && ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0 && spawn(&w, fd) == 0 &&
	     hash_file(h, fd) && hash_named(h, place->library);
	close(fd);
	return ok;
}

/* ------------------------------------------------------------------ cache */

/* Makes the folder and those above it. */
static bool make_folders(const char *path)
{
	char *copy = format("%s", path);

	for (char *at = copy + 1; *at; at++)
		if (*at == '/') {
			*at = '\0';
			mkdir(copy, 0755);
			*at = '/';
		}
	mkdir(copy, 0700);
	free(copy);
	return access(path, W_OK | X_OK) == 0;
}

/* The cache's folder, or NULL if there is none. */
static char *cache_folder(void)
{
	const char *cache = setting("XDG_CACHE_HOME", NULL), *home = setting("HOME", NULL);
	char *folder;

	if (!cache && !home)
		return NULL;
	folder = cache ? format("%s/goro", cache) : format("%s/.cache/goro", home);
	return make_folders(folder) ? folder : NULL;
}

/* Removes what was not used for a month. */
static void cache_trim(const char *folder)
{
	time_t oldest = time(NULL) - MONTH_S;
	DIR *d = opendir(folder);
	struct dirent *e;
	struct stat st;

	if (!d)
		return;
	while ((e = readdir(d)))
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
		    st.st_mtime < oldest)
			unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
}

/* The compiled program in the cache. NULL: it does not compile, which was said. */
static char *cached(const struct job *job, const struct place *place, const char *folder)
{
	char *program, *fresh;
	hash h;

	if (!hash_job(job, place, &h))
		return NULL;
	program = format("%s/%016llx%016llx", folder, (unsigned long long)(h >> 64), (unsigned long long)h);
	if (access(program, X_OK) == 0) {
		utimensat(AT_FDCWD, program, NULL, 0);
		return program;
	}
	cache_trim(folder);
	fresh = format("%s.%d", program, (int)getpid());
	if (!compile(job, place, fresh)) {
		unlink(fresh);
		return NULL;
	}
	if (rename(fresh, program) != 0)
		die("cannot write %s: %s", program, strerror(errno));
	return program;
}

/* ------------------------------------------------------------------- run */

static struct words program_words(const struct job *job, const char *program)
{
	struct words w = { 0 };

	words_add(&w, program);
	for (size_t i = 0; i < job->args.n; i++)
		words_add(&w, job->args.at[i]);
	return w;
}

/* Without a cache: compiled, run and removed. */
static int run_once(const struct job *job, const struct place *place)
{
	char *folder = format("%s/goro-XXXXXX", setting("TMPDIR", "/tmp")), *program;
	struct words w;
	int status = STATUS_FAILED;

	if (!mkdtemp(folder))
		die("no cache and no temporary folder: %s: %s", folder, strerror(errno));
	program = format("%s/program", folder);
	if (compile(job, place, program)) {
		w = program_words(job, program);
		status = spawn(&w, -1);
	}
	unlink(program);
	rmdir(folder);
	return status < 0 ? STATUS_FAILED : status;
}

static const char run_help[] =
	"usage: goro run [--calls] FILE... [ARGUMENT...] [-- FLAG...]\n"
	"\n"
	"Compiles C or C++ files with goro and runs the program with the arguments. The\n"
	"flags go to the compiler: $CC or $CXX, else cc or c++. What was compiled is\n"
	"kept, and used again if nothing has changed. The exit status is the program's.\n"
	"\n"
	"    --calls  libc's blocking calls hand over at once: see goro-calls(7)\n"
	"\n"
	"    goro run hello.c\n"
	"    goro run server.c :8080 -- -O0 -lz\n";

static const char build_help[] =
	"usage: goro build [--calls] [-o PROGRAM] FILE... [-- FLAG...]\n"
	"\n"
	"Compiles C or C++ files with goro into a program, linked with the static\n"
	"library. It is named after the first file if -o does not name it.\n"
	"\n"
	"    --calls  libc's blocking calls hand over at once: see goro-calls(7)\n"
	"\n"
	"    goro build -o server server.c http.c\n";

/* True if the words ask for help or are wrong, with the status to end with. */
static bool has_ended(int argc, char **argv, const struct job *job, const char *help, int *status)
{
	if (asks_for_help(argc, argv)) {
		fputs(help, stdout);
		*status = 0;
		return true;
	}
	if (job->sources.n != 0)
		return false;
	if (job->args.n != 0)
		say("not a C or C++ file: %s", job->args.at[0]);
	fputs(help, stderr);
	*status = STATUS_USAGE;
	return true;
}

int cmd_run(int argc, char **argv)
{
	struct job job = parse(argc, argv, false);
	struct place place;
	struct words w;
	char *folder, *program;
	int status;

	if (has_ended(argc, argv, &job, run_help, &status))
		return status;
	place = find_library();
	folder = cache_folder();
	if (!folder)
		return run_once(&job, &place);
	program = cached(&job, &place, folder);
	if (!program)
		return STATUS_FAILED;
	w = program_words(&job, program);
	fflush(NULL);
	execv(program, w.at);
	die("cannot run %s: %s", program, strerror(errno));
}

/* PROGRAM for PROGRAM.c, in this folder. */
static const char *program_name(const char *source)
{
	const char *slash = strrchr(source, '/'), *base = slash ? slash + 1 : source;

	return format("%.*s", (int)(strrchr(base, '.') - base), base);
}

int cmd_build(int argc, char **argv)
{
	struct job job = parse(argc, argv, true);
	struct place place;
	int status;

	if (has_ended(argc, argv, &job, build_help, &status))
		return status;
	if (job.args.n != 0) {
		say("not a C or C++ file: %s", job.args.at[0]);
		return STATUS_USAGE;
	}
	place = find_library();
	return compile(&job, &place, job.out ? job.out : program_name(job.sources.at[0])) ? 0 : STATUS_FAILED;
}
