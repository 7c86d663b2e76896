/*
 * new.c - goro new: a project in a new folder.
 *
 * The files are those of cmd/template, embedded as they are; @NAME@ and @VERSION@ in them
 * are replaced. The name becomes a folder, a CMake target and a program, so it is a plain
 * word.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <goro.h>

#include "cmd.h"
#include "embed.h"

#define NAME_MAX_BYTES 64

EMBED(template_cmake, "template/CMakeLists.txt")
EMBED(template_main, "template/main.c")
EMBED(template_three, "template/three_lines.txt")
EMBED(template_two, "template/two_lines.txt")
EMBED(template_ci, "template/ci.yml")
EMBED(template_ignore, "template/gitignore")
EMBED(template_readme, "template/README.md")

static const char *const folders[] = { "", "/src", "/test", "/.github", "/.github/workflows" };

static const struct {
	const char *path, *text;
} files[] = {
	{ "CMakeLists.txt", template_cmake },
	{ "src/main.c", template_main },
	{ "test/three_lines.txt", template_three },
	{ "test/two_lines.txt", template_two },
	{ ".github/workflows/ci.yml", template_ci },
	{ ".gitignore", template_ignore },
	{ "README.md", template_readme },
};

static const char help[] =
	"usage: goro new NAME\n"
	"\n"
	"Makes a project in a new folder: a small program with a pool of workers, its\n"
	"CMakeLists.txt, a test, CI, and a README that says how to build it.\n"
	"The name has letters, digits, - and _, and begins with a letter.\n"
	"\n"
	"    goro new hello\n";

/* Targets that every build with CMake has. */
static bool is_reserved(const char *name)
{
	static const char *const names[] = { "all", "clean", "depend", "edit_cache", "help", "install",
		                             "package", "package_source", "rebuild_cache", "test" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Why the name is refused; NULL: it is not. */
static const char *fault_of(const char *name)
{
	if (!*name || !strchr(LETTERS, *name))
		return "a name begins with a letter";
	if (name[strspn(name, LETTERS "0123456789-_")])
		return "a name has letters, digits, - and _";
	if (strlen(name) > NAME_MAX_BYTES)
		return "too long";
	return is_reserved(name) ? "CMake has a target of that name" : NULL;
}

/* The text with @NAME@ and @VERSION@ replaced. */
static void write_expanded(FILE *f, const char *text, const char *name)
{
	static const char name_mark[] = "@NAME@", version_mark[] = "@VERSION@";

	while (*text)
		if (strncmp(text, name_mark, sizeof name_mark - 1) == 0) {
			fputs(name, f);
			text += sizeof name_mark - 1;
		} else if (strncmp(text, version_mark, sizeof version_mark - 1) == 0) {
			fputs(GORO_VERSION, f);
			text += sizeof version_mark - 1;
		} else {
			putc(*text++, f);
		}
}

static void write_file(const char *path, const char *text, const char *name)
{
	FILE *f = fopen(path, "wxe");
	bool failed;

	if (!f)
		die("cannot make %s: %s", path, strerror(errno));
	write_expanded(f, text, name);
	failed = ferror(f);
	if (fclose(f) != 0 || failed)
		die("cannot write %s: %s", path, strerror(errno));
}

static void make_project(const char *name)
{
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		if (mkdir(format("%s%s", name, folders[i]), 0777) != 0)
			die("cannot make the folder %s%s: %s", name, folders[i], strerror(errno));
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		write_file(format("%s/%s", name, files[i].path), files[i].text, name);
}

int cmd_new(int argc, char **argv)
{
	const char *fault;

	if (asks_for_help(argc, argv)) {
		fputs(help, stdout);
		return 0;
	}
	if (argc != 2) {
		fputs(help, stderr);
		return STATUS_USAGE;
	}
	fault = fault_of(argv[1]);
	if (fault) {
		say("%s: %s", argv[1], fault);
		return STATUS_USAGE;
	}
	make_project(argv[1]);
	printf("Made the folder %s. Now:\n\n"
	       "    cd %s\n"
	       "    cmake -B build && cmake --build build && ctest --test-dir build\n"
	       "    build/%s src/main.c README.md\n", argv[1], argv[1], argv[1]);
	return 0;
}
