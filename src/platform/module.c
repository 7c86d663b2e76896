/*
 * module.c - which loaded file an address belongs to
 *
 * A walk calls module_find once a frame, often in a signal handler that may have
 * interrupted the dynamic loader. So it cannot use dl_iterate_phdr and dladdr, which take
 * the loader's lock. The kernel's auxiliary vector tells where the program and the vdso
 * are, which the loader of a statically linked program does not. For libraries there are
 * three sources:
 *
 * 1. The loader itself, by _dl_find_object (glibc 2.35 and newer): lock-free,
 *    async-signal-safe, always up to date. Where it exists, the other two are not used.
 * 2. A snapshot that is made with dl_iterate_phdr when the runtime starts.
 * 3. /proc/self/maps and the ELF header in memory, for a library that was loaded
 *    after the snapshot.
 *
 * Limit of source 2: after dlclose the snapshot names memory that is not there any more.
 */
#include "platform/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "platform/maps.h"

#define MODULES_MAX 512

#define VDSO_NAME "linux-vdso.so.1"
#define SELF_EXE "/proc/self/exe"

/* glibc defines the macro where it has _dl_find_object. Weak: a program built here may
 * run with an older glibc. */
#ifdef DLFO_STRUCT_HAS_EH_DBASE
#pragma weak _dl_find_object
#endif

static struct module snapshot[MODULES_MAX];
static unsigned snapshot_n;

/* Completes m, whose bias is set, from program headers. False if none is of a segment. */
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
	/* The first segment begins with the header, whose page is mapped at base. */
	m->bias = base - (m->start & ~(uintptr_t)0xfff);
	return module_from_phdrs(m, ph, eh->e_phnum);
}

static bool module_holds(const struct module *m, uintptr_t pc)
{
	return pc >= m->start && pc < m->end;
}

/* getauxval sets errno if the value is not there. */
static uintptr_t aux_value(unsigned long type)
{
	int saved = errno;
	uintptr_t value = getauxval(type);

	errno = saved;
	return value;
}

/* Finds the program by the headers that the kernel says it has: of a statically linked
 * one the loader knows the code at most. */
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

	/* The vdso has a page or two: do not read its header for addresses far away. */
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
	/* acquire: the modules; pairs with store_release in add_one */
	for (unsigned i = 0, n = load_acquire(&snapshot_n); i < n; i++) {
		if (module_holds(&snapshot[i], pc)) {
			*out = snapshot[i];
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
	out->path = NULL;	/* no memory to keep it in; module_file looks again */
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

static int add_one(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct module m = { .bias = info->dlpi_addr, .path = info->dlpi_name };

	(void)size, (void)arg;
	if (snapshot_n == MODULES_MAX || !module_from_phdrs(&m, info->dlpi_phdr, info->dlpi_phnum))
		return 0;
	snapshot[snapshot_n] = m;
	/* release: the module; pairs with load_acquire in module_find_in_snapshot */
	store_release(&snapshot_n, snapshot_n + 1);
	return 0;
}

void module_snapshot(void)
{
	dl_iterate_phdr(add_one, NULL);
}

void module_start(void)
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
	size_t n = strnlen(from, size - 1);

	memcpy(buf, from, n);
	buf[n] = '\0';
}

void module_file(const struct module *m, char *buf, size_t size)
{
	struct maps_file file;

	if (m->path && (m->path[0] == '/' || module_is_vdso(m)))
		copy_string(buf, size, m->path);
	else if (module_is_program(m))
		copy_string(buf, size, SELF_EXE);
	else if (maps_find(m->start, &file))	/* unknown or relative */
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
