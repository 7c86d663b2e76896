/*
 * symbol_test.c - names, files and lines of addresses whose answer is known
 *
 * Debug information must be there for the tests of lines: all builds have -g.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>

#include "unwind/dwarf.h"
#include "unwind/elf_file.h"
#include "platform/module.h"
#include "unwind/symbol.h"
#include "random.h"
#include "test.h"

#define NOINLINE __attribute__((noinline))

static struct symbol s;

/* The address of the last call of note_caller. */
static uintptr_t called_from;

NOINLINE void note_caller(void);
NOINLINE void note_caller(void)
{
	called_from = (uintptr_t)__builtin_return_address(0) - 1;
	__asm__ volatile("" ::: "memory");
}

NOINLINE int global_function(int n);
NOINLINE int global_function(int n)
{
	note_caller();
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

/* With the symbol of a C++ function. */
NOINLINE int cxx_function(int n) __asm__("_ZN6server6workerIiE3runERKS_");
NOINLINE int cxx_function(int n)
{
	note_caller();
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

/* With the symbol of a compiler's clone. */
NOINLINE int clone_function(int n) __asm__("clone_function.isra.0");
NOINLINE int clone_function(int n)
{
	note_caller();
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

static NOINLINE int static_function(int n, int *line)
{
	*line = __LINE__; note_caller();
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

TEST(names_as_people_write_them)
{
	CHECK_EQ(cxx_function(1), 2);
	CHECK(symbol_find(called_from, &s));
	CHECK_STR(s.function, "server::worker<...>::run");
	CHECK_EQ(clone_function(1), 2);
	CHECK(symbol_find(called_from, &s));
	CHECK_STR(s.function, "clone_function");
}

TEST(global_function_by_name)
{
	CHECK(symbol_find((uintptr_t)global_function, &s));
	CHECK_STR(s.function, "global_function");
	CHECK_EQ(s.offset, 0);
	CHECK(symbol_find((uintptr_t)global_function + 1, &s));
	CHECK_STR(s.function, "global_function");
	CHECK_EQ(s.offset, 1);
}

TEST(static_function_by_name)
{
	int line;

	static_function(1, &line);
	CHECK(symbol_find(called_from, &s));
	CHECK_STR(s.function, "static_function");
	CHECK(s.offset > 0);
	CHECK_EQ(called_from - s.offset, (uintptr_t)static_function);
}

TEST(line_is_exact)
{
	int line;

	static_function(1, &line);
	CHECK(symbol_find(called_from, &s));
	CHECK_EQ(s.line, line);
	called_from = 0; note_caller(); line = __LINE__;
	CHECK(symbol_find(called_from, &s));
	CHECK_EQ(s.line, line);
}

TEST(file_is_absolute_and_clean)
{
	struct stat here, there;

	note_caller();
	CHECK(symbol_find(called_from, &s));
	CHECK_EQ(s.file[0], '/');
	CHECK(ends_with(s.file, "/symbol_test.c"));
	CHECK(!strstr(s.file, "/../") && !strstr(s.file, "/./") && !strstr(s.file, "//"));
	CHECK_EQ(stat(s.file, &here), 0);
	CHECK_EQ(stat(TEST_SOURCE_DIR "/unwind/symbol_test.c", &there), 0);
	CHECK_EQ(here.st_ino, there.st_ino);
}

/* A function of another file, and so of another line table. */
TEST(other_files_have_their_own_lines)
{
	CHECK(symbol_find((uintptr_t)symbol_find, &s));
	CHECK_STR(s.function, "symbol_find");
	CHECK(ends_with(s.file, "/src/unwind/symbol.c"));
	CHECK(s.line > 0);
	CHECK(symbol_find((uintptr_t)module_start, &s));
	CHECK_STR(s.function, "module_start");
	CHECK(ends_with(s.file, "/src/platform/module.c"));
}

TEST(module_is_named)
{
	char exe[512];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	CHECK(n > 0);
	exe[n] = 0;
	CHECK(symbol_find((uintptr_t)global_function, &s));
	CHECK_STR(s.module, exe);
}

/* By dlsym, because &puts in a program may be a stub. */
TEST(library_functions_by_their_plain_names)
{
	static const char *const names[] = { "puts", "nanosleep", "fopen", "qsort" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *handle = dlopen("libc.so.6", RTLD_LAZY);
		void *fn = handle ? dlsym(handle, names[i]) : NULL;

		if (!fn)
			SKIP("no shared libc");
		CHECK(symbol_find((uintptr_t)fn, &s));
		CHECK_STR(s.function, names[i]);
		CHECK_EQ(s.offset, 0);
		CHECK(strstr(s.module, "libc"));
	}
}

TEST(no_module_no_symbol)
{
	static char data_page[1];
	char *heap = malloc(100);

	CHECK(!symbol_find(0, &s));
	CHECK(!symbol_find(1, &s));
	CHECK(!symbol_find(UINTPTR_MAX, &s));
	CHECK(!symbol_find((uintptr_t)heap, &s));
	CHECK(!symbol_find((uintptr_t)&heap, &s));
	CHECK_STR(s.function, "");
	CHECK_STR(s.file, "");
	/* In a module, but not code. */
	CHECK(symbol_find((uintptr_t)data_page, &s));
	CHECK_STR(s.function, "");
	CHECK_EQ(s.line, 0);
	free(heap);
}

TEST(vdso_functions)
{
	uintptr_t base = getauxval(AT_SYSINFO_EHDR);

	if (!base)
		SKIP("no vdso");
	CHECK(symbol_find(base, &s));
	CHECK_STR(s.module, "linux-vdso.so.1");
	CHECK_EQ(s.offset, 0);
}

static void scribble(uint8_t *at, size_t size)
{
	if (size)
		at[random_word() % size] = random_word() % 3 ? (uint8_t)random_word() : 0xff;
}

static void scribble_section(const struct elf_file *f, const char *name)
{
	struct elf_section section;

	if (elf_section(f, name, &section))
		scribble((uint8_t *)(uintptr_t)section.data, section.size);
}

/* A copy of this program's file with a few bytes of its debug information changed. The
 * copy is malloc'd, so that ASan sees a read behind its end. */
TEST(damaged_files_never_crash)
{
	static const char *const names[] = {
		".debug_line", ".debug_line", ".debug_line", ".debug_line_str", ".debug_str",
	};
	struct elf_file own, f;
	struct module m;
	char path[512];
	int line, rounds = 0;
	uint8_t *copy;

	CHECK(module_find((uintptr_t)global_function, &m));
	CHECK(elf_open_module(&own, &m));
	f = own;
	copy = malloc(own.size);
	f.base = copy;
	for (clock_t end = clock() + CLOCKS_PER_SEC * 2; clock() < end; rounds++) {
		uint64_t addr = (uintptr_t)symbol_find - m.bias + random_word() % 4096;

		memcpy(copy, own.base, own.size);
		for (uint64_t i = random_word() % 20; i > 0; i--)
			scribble_section(&f, names[random_word() % 5]);
		if (rounds % 8 == 0)
			scribble(copy + 16, 48); /* the header, behind its magic number */
		if (rounds % 8 == 1)
			f.size = own.size - random_word() % own.size / 2;
		dwarf_line_find(&f, addr, path, sizeof(path), &line);
		f.size = own.size;
	}
	CHECK(rounds > 10);
	free(copy);
}

TEST(errno_is_kept)
{
	errno = 4711;
	symbol_find((uintptr_t)global_function, &s);
	symbol_find((uintptr_t)puts, &s);
	symbol_find(1, &s);
	CHECK_EQ(errno, 4711);
}

/* Every address of this file's code has a function, and no line beyond the last one. */
TEST(every_instruction_has_a_place)
{
	uintptr_t start = (uintptr_t)symbol_find;

	for (uintptr_t pc = start; pc < start + 4096; pc += 4)
		CHECK(symbol_find(pc, &s));
	for (uintptr_t pc = start; pc < start + 64; pc++) {
		CHECK(symbol_find(pc, &s));
		CHECK_STR(s.function, "symbol_find");
		CHECK(s.line > 0 && s.line < 1000);
	}
}
