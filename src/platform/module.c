/*
 * module.c - which loaded file an address belongs to
 *
 * The question is asked once a frame, often in a signal handler, perhaps while the
 * interrupted code is inside the dynamic loader. So dl_iterate_phdr and dladdr are
 * out: they take the loader's lock. There are three sources instead:
 *
 * 1. The loader itself, by _dl_find_object (glibc 2.35 and newer): lock-free,
 *    async-signal-safe, always up to date. Where it exists nothing else is asked,
 *    but for the program and the vdso, which the kernel tells us about and the
 *    loader of a statically linked program does not.
 * 2. A snapshot made by module_refresh() with dl_iterate_phdr, in ordinary code.
 * 3. /proc/self/maps and the ELF header in memory, for a library that was loaded
 *    after the snapshot.
 *
 * The snapshot is a table that only grows. A slot is claimed by a counter, filled,
 * and then marked live; a module that is gone at the next refresh is marked dead,
 * and its slot is not used again. Rejected: replacing the whole table, or reusing
 * slots, since a handler on another thread may be reading them and nothing tells
 * when it has finished. A program that unloads and loads hundreds of libraries
 * fills the table and lives off source 3 from then on.
 *
 * Limit of source 2: between dlclose and the next refresh the table names memory
 * that is no longer there.
 */
#include "module.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "atomic.h"
#include "maps.h"
#include "text.h"

#define MODULE_SLOTS 512

#define VDSO_NAME "linux-vdso.so.1"
#define SELF_EXE "/proc/self/exe"

/*
 * The macro comes with the function. Weak: a program built here may run where glibc
 * is older.
 */
#ifdef DLFO_STRUCT_HAS_EH_DBASE
#pragma weak _dl_find_object
#endif

enum slot_state { SLOT_EMPTY, SLOT_LIVE, SLOT_DEAD };

struct slot {
	struct module module;		/* constant from when the slot turns live */
	enum slot_state state;
	unsigned seen;			/* the last refresh that saw it; for module_refresh only */
};

static struct slot slots[MODULE_SLOTS];
static unsigned slots_claimed;

static unsigned slots_used(void)
{
	unsigned n = load_relaxed(&slots_claimed);

	return n < MODULE_SLOTS ? n : MODULE_SLOTS;
}

/*
 * Completes m, whose bias is set, from its program headers. False if it has no
 * segment to load.
 */
static bool module_from_phdrs(struct module *m, const ElfW(Phdr) *ph, size_t n)
{
	m->start = UINTPTR_MAX;
	m->end = 0;
	m->eh_frame_hdr = NULL;
	for (size_t i = 0; i < n; i++) {
		uintptr_t at = m->bias + ph[i].p_vaddr;

		if (ph[i].p_type == PT_GNU_EH_FRAME)
			m->eh_frame_hdr = (const uint8_t *)at;
		if (ph[i].p_type != PT_LOAD)
			continue;
		if (at < m->start)
			m->start = at;
		if (at + ph[i].p_memsz > m->end)
			m->end = at + ph[i].p_memsz;
	}
	return m->start < m->end;
}

/* Describes the ELF image whose header is in memory at base. */
static bool module_from_image(struct module *m, uintptr_t base)
{
	const ElfW(Ehdr) *eh = (const void *)base;
	const ElfW(Phdr) *ph;

	if (memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 || eh->e_phentsize != sizeof(*ph))
		return false;
	ph = (const void *)(base + eh->e_phoff);
	m->bias = 0;
	if (!module_from_phdrs(m, ph, eh->e_phnum))
		return false;
	/*
	 * The first segment begins with the header, and page by page its place in
	 * memory is what we were given.
	 */
	m->bias = base - (m->start & ~(uintptr_t)0xfff);
	return module_from_phdrs(m, ph, eh->e_phnum);
}

static bool module_holds(const struct module *m, uintptr_t pc)
{
	return pc >= m->start && pc < m->end;
}

/* getauxval complains in errno of what is not there. */
static uintptr_t aux_value(unsigned long type)
{
	int saved = errno;
	uintptr_t value = getauxval(type);

	errno = saved;
	return value;
}

/*
 * The program itself, from the headers the kernel says it has: the loader knows
 * only the code of one that is statically linked, and an older one nothing.
 */
static bool module_find_program(uintptr_t pc, struct module *out)
{
	uintptr_t headers = aux_value(AT_PHDR);

	out->path = "";
	return headers && module_from_image(out, headers & ~(uintptr_t)0xfff) &&
	       module_holds(out, pc);
}

static bool module_find_vdso(uintptr_t pc, struct module *out)
{
	uintptr_t base = aux_value(AT_SYSINFO_EHDR);

	/*
	 * The vdso is a page or two; do not read its header for addresses that
	 * cannot be in it.
	 */
	if (!base || pc < base || pc - base >= 0x10000)
		return false;
	out->path = VDSO_NAME;
	return module_from_image(out, base) && module_holds(out, pc);
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE
static bool loader_answers(void)
{
	return _dl_find_object != NULL;
}

bool module_find_by_loader(uintptr_t pc, struct module *out)
{
	struct dl_find_object found;

	if (!loader_answers() || _dl_find_object((void *)pc, &found) != 0)
		return false;
	out->start = (uintptr_t)found.dlfo_map_start;
	out->end = (uintptr_t)found.dlfo_map_end;
	out->bias = found.dlfo_link_map->l_addr;
	out->eh_frame_hdr = found.dlfo_eh_frame;
	out->path = found.dlfo_link_map->l_name;
	return true;
}
#else
static bool loader_answers(void)
{
	return false;
}

bool module_find_by_loader(uintptr_t pc, struct module *out)
{
	(void)pc;
	(void)out;
	return false;
}
#endif

bool module_find_in_snapshot(uintptr_t pc, struct module *out)
{
	for (unsigned i = 0, n = slots_used(); i < n; i++) {
		/*
		 * acquire: the slot's module is complete; pairs with the release in
		 * slot_add
		 */
		if (load_acquire(&slots[i].state) != SLOT_LIVE)
			continue;
		if (module_holds(&slots[i].module, pc)) {
			*out = slots[i].module;
			return true;
		}
	}
	return false;
}

bool module_find_in_maps(uintptr_t pc, struct module *out)
{
	struct maps_file file;

	if (!maps_find(pc, &file) || file.path[0] != '/')
		return false;
	out->path = NULL;	/* there is nowhere to keep it; module_file will look again */
	return module_from_image(out, file.base) && module_holds(out, pc);
}

bool module_find(uintptr_t pc, struct module *out)
{
	if (module_find_program(pc, out) || module_find_by_loader(pc, out) ||
	    module_find_vdso(pc, out))
		return true;
	if (loader_answers())
		return false;
	return module_find_in_snapshot(pc, out) || module_find_in_maps(pc, out);
}

static bool module_same(const struct module *a, const struct module *b)
{
	return a->start == b->start && a->end == b->end && a->eh_frame_hdr == b->eh_frame_hdr &&
	       a->path == b->path;
}

static void slot_add(const struct module *m, unsigned refresh)
{
	unsigned i = fetch_add_relaxed(&slots_claimed, 1);

	if (i >= MODULE_SLOTS) {
		store_relaxed(&slots_claimed, MODULE_SLOTS);
		return;
	}
	slots[i].module = *m;
	slots[i].seen = refresh;
	/*
	 * release: publishes the module; pairs with the acquire in
	 * module_find_in_snapshot
	 */
	store_release(&slots[i].state, SLOT_LIVE);
}

static int refresh_one(struct dl_phdr_info *info, size_t size, void *arg)
{
	unsigned refresh = *(unsigned *)arg;
	struct module m = { .bias = info->dlpi_addr, .path = info->dlpi_name };

	(void)size;
	if (!module_from_phdrs(&m, info->dlpi_phdr, info->dlpi_phnum))
		return 0;
	for (unsigned i = 0, n = slots_used(); i < n; i++) {
		if (load_acquire(&slots[i].state) == SLOT_LIVE &&
		    module_same(&slots[i].module, &m)) {
			slots[i].seen = refresh;
			return 0;
		}
	}
	slot_add(&m, refresh);
	return 0;
}

void module_snapshot(void)
{
	static int busy;
	static unsigned refresh;

	/*
	 * Two at once would bury each other's modules; the second may as well rely
	 * on the first.
	 */
	if (exchange_acquire(&busy, 1))
		return;
	refresh++;
	dl_iterate_phdr(refresh_one, &refresh);
	for (unsigned i = 0, n = slots_used(); i < n; i++)
		if (slots[i].seen != refresh)
			store_relaxed(&slots[i].state, SLOT_DEAD);
	/* release: `seen`, for the next refresh; pairs with exchange_acquire above */
	store_release(&busy, 0);
}

void module_refresh(void)
{
	if (!loader_answers())
		module_snapshot();
}

bool module_is_program(const struct module *m)
{
	return m->path && m->path[0] == '\0';
}

bool module_is_vdso(const struct module *m)
{
	return m->path && strcmp(m->path, VDSO_NAME) == 0;
}

static void copy_string(char *buf, size_t size, const char *from)
{
	struct text t = text_make(buf, size);

	text_add(&t, from);
}

void module_file(const struct module *m, char *buf, size_t size)
{
	struct maps_file file;

	if (m->path && (m->path[0] == '/' || module_is_vdso(m)))
		copy_string(buf, size, m->path);
	else if (module_is_program(m))
		copy_string(buf, size, SELF_EXE);
	else if (maps_find(m->start, &file))	/* unknown, or relative to who knows what */
		copy_string(buf, size, file.path);
	else
		buf[0] = '\0';
}

void module_name(const struct module *m, char *buf, size_t size)
{
	ssize_t n;

	module_file(m, buf, size);
	if (strcmp(buf, SELF_EXE) != 0)
		return;
	n = readlink(SELF_EXE, buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
}
