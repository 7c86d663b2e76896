/* module_test.c - all three sources of modules give the same answer */
#include <dlfcn.h>
#include <sys/stat.h>
#include <errno.h>
#include <link.h>
#include <sys/auxv.h>

#include "platform/module.h"
#include "test.h"

static void some_code(void)
{
}

/* The address of a function in libc, not of a stub for it. */
static uintptr_t libc_code(void)
{
	void *handle = dlopen("libc.so.6", RTLD_LAZY);
	void *fn = handle ? dlsym(handle, "qsort") : NULL;

	if (!fn)
		SKIP("no shared libc");
	return (uintptr_t)fn;
}

/* The names may differ: musl's loader and libc are one file. */
static bool same_file(const char *a, const char *b)
{
	struct stat st, other;

	return strcmp(strrchr(a, '/'), strrchr(b, '/')) == 0 ||
	       (stat(a, &st) == 0 && stat(b, &other) == 0 && st.st_dev == other.st_dev &&
	        st.st_ino == other.st_ino);
}

/* One source may know the path and another not: module_name gives the same file. */
static void check_same(const struct module *a, const struct module *b)
{
	char a_name[512], b_name[512];

	CHECK_EQ(a->bias, b->bias);
	CHECK(a->eh_frame_hdr == b->eh_frame_hdr);
	CHECK(a->start < b->end && b->start < a->end);
	module_name(a, a_name, sizeof(a_name));
	module_name(b, b_name, sizeof(b_name));
	CHECK(a_name[0] == '/');
	CHECK(same_file(a_name, b_name));
}

TEST(program_is_found)
{
	struct module m, by_maps;

	CHECK(module_find((uintptr_t)some_code, &m));
	CHECK((uintptr_t)some_code >= m.start && (uintptr_t)some_code < m.end);
	CHECK(module_find_in_maps((uintptr_t)some_code, &by_maps));
	check_same(&m, &by_maps);
}

TEST(library_is_found_by_all_sources)
{
	uintptr_t pc = libc_code();
	struct module m, other;

	CHECK(module_find(pc, &m));
	CHECK(m.eh_frame_hdr != NULL);
	CHECK(module_find_in_maps(pc, &other));
	check_same(&m, &other);
	CHECK(!module_find_in_snapshot(pc, &other));
	module_snapshot();
	CHECK(module_find_in_snapshot(pc, &other));
	check_same(&m, &other);
}

/* The other sources find a library that is loaded after the snapshot. */
TEST(late_library_is_found)
{
	const char *name = "libresolv.so.2";
	struct module m, other;
	struct link_map *map;
	uintptr_t addr;

	module_snapshot();
	if (dlopen(name, RTLD_NOW | RTLD_NOLOAD) || !(map = dlopen(name, RTLD_NOW)))
		SKIP("no library to load late");
	addr = (uintptr_t)map->l_ld;
	CHECK(!module_find_in_snapshot(addr, &other));
	CHECK(module_find(addr, &m));
	CHECK(module_find_in_maps(addr, &other));
	check_same(&m, &other);
	dlclose(map);
	if (dlopen(name, RTLD_NOW | RTLD_NOLOAD))
		SKIP("the library stays loaded");
	CHECK(!module_find(addr, &other));
}

TEST(vdso_is_found)
{
	uintptr_t base = getauxval(AT_SYSINFO_EHDR);
	struct module m;

	if (!base)
		SKIP("no vdso");
	CHECK(module_find(base + 100, &m));
	CHECK_EQ(m.start, base);
	CHECK(module_is_vdso(&m));
}

TEST(data_is_in_no_module)
{
	int local;
	void *heap = malloc(1);
	struct module m;

	errno = 4711;
	CHECK(!module_find((uintptr_t)&local, &m));
	CHECK(!module_find((uintptr_t)heap, &m));
	CHECK(!module_find(0, &m));
	CHECK(!module_find(UINTPTR_MAX, &m));
	CHECK(!module_find_in_maps((uintptr_t)&local, &m));
	CHECK(!module_find_in_maps((uintptr_t)heap, &m));
	CHECK(!module_find_in_maps(0, &m));
	CHECK(!module_find_in_maps(UINTPTR_MAX, &m));
	CHECK_EQ(errno, 4711);
	free(heap);
}

TEST(names_are_cut_to_size)
{
	struct module m;
	char tiny[4] = "xxx";

	CHECK(module_find((uintptr_t)some_code, &m));
	module_name(&m, tiny, sizeof(tiny));
	CHECK_EQ(strlen(tiny), 3);
	CHECK_EQ(tiny[0], '/');
}
