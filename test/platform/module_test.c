/*
 * module_test.c - all three ways to find a module give the same answer
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sys/auxv.h>

#include "module.h"
#include "test.h"

static void some_code(void)
{
}

/* A function of libc itself, not of a linkage table. */
static uintptr_t libc_code(void)
{
	void *handle = dlopen("libc.so.6", RTLD_LAZY);
	void *fn = handle ? dlsym(handle, "qsort") : NULL;

	if (!fn)
		SKIP("no shared libc");
	return (uintptr_t)fn;
}

/* The paths may be known or not; what they lead to is the same. */
static void check_same(const struct module *a, const struct module *b)
{
	char a_name[512], b_name[512];

	CHECK_EQ(a->bias, b->bias);
	CHECK(a->eh_frame_hdr == b->eh_frame_hdr);
	CHECK(a->start < b->end && b->start < a->end);
	module_name(a, a_name, sizeof(a_name));
	module_name(b, b_name, sizeof(b_name));
	CHECK(a_name[0] == '/');
	CHECK_STR(strrchr(a_name, '/'), strrchr(b_name, '/'));
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
	module_snapshot();	/* nothing changes when nothing has changed */
	CHECK(module_find_in_snapshot(pc, &other));
	check_same(&m, &other);
}

/* After the snapshot: the other sources know it, and a new snapshot adds and takes away. */
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
	module_snapshot();
	CHECK(module_find_in_snapshot(addr, &other));
	check_same(&m, &other);
	dlclose(map);
	if (dlopen(name, RTLD_NOW | RTLD_NOLOAD))
		SKIP("the library stays loaded");
	module_snapshot();
	CHECK(!module_find_in_snapshot(addr, &other));
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
