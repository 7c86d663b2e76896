/*
 * elf_file.c - the sections of ELF files, from disk or from memory
 *
 * Names of functions, line numbers and (for some statically linked programs) the place of
 * unwind information are in sections that are not loaded with the program. So the file is
 * opened and mapped, by system calls alone.
 *
 * A trace has many addresses in few files, so mappings are kept in a small table. A file
 * that finds a free slot stays for good. It is identified by fstat, so that a library
 * that was replaced is not taken for the old one. A thread claims a slot by compare and
 * swap and publishes it when it is complete. One that does not find the file maps it,
 * too, and puts it in another slot or unmaps it after use.
 *
 * The ELF headers, in memory and on disk, decide whether a file is still the one that the
 * module was loaded from: they hold the sizes and places of all sections, which hardly
 * ever survive a rebuild.
 *
 * Files are not trusted: sections must lie within them. Reading a file that is truncated
 * while it is mapped raises SIGBUS all the same.
 */
#include "unwind/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "platform/atomic.h"
#include "platform/maps.h"
#include "platform/raw_file.h"
#include "base/text.h"

enum kept_state { KEPT_EMPTY, KEPT_CLAIMED, KEPT_READY };

struct kept {
	enum kept_state state;
	/* Constant once the state is KEPT_READY. */
	struct stat st;
	const uint8_t *base;
};

static struct kept kept[ELF_KEPT_FILES];

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static const uint8_t *kept_find(const struct stat *st)
{
	for (int i = 0; i < ELF_KEPT_FILES; i++) {
		/* acquire: the slot is complete; pairs with store_release in kept_add */
		if (load_acquire(&kept[i].state) == KEPT_READY && same_file(&kept[i].st, st))
			return kept[i].base;
	}
	return NULL;
}

/* False if no slot is free. */
static bool kept_add(const struct stat *st, const uint8_t *base)
{
	for (int i = 0; i < ELF_KEPT_FILES; i++) {
		enum kept_state empty = KEPT_EMPTY;

		if (load_relaxed(&kept[i].state) != KEPT_EMPTY ||
		    !cas_relaxed(&kept[i].state, &empty, KEPT_CLAIMED))
			continue;
		kept[i].st = *st;
		kept[i].base = base;
		/* release: publishes the slot; pairs with load_acquire in kept_find */
		store_release(&kept[i].state, KEPT_READY);
		return true;
	}
	return false;
}

static bool is_elf(const struct elf_file *f)
{
	Elf64_Ehdr eh;

	if (f->size < sizeof(eh))
		return false;
	memcpy(&eh, f->base, sizeof(eh));
	return memcmp(eh.e_ident, ELFMAG, SELFMAG) == 0 && eh.e_ident[EI_CLASS] == ELFCLASS64 &&
	       eh.e_ident[EI_DATA] == ELFDATA2LSB;
}

static bool map_file(struct elf_file *f, int fd)
{
	struct stat st;
	void *base;

	if (raw_stat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return false;
	*f = (struct elf_file){ .base = kept_find(&st), .size = (size_t)st.st_size };
	if (f->base)
		return true;
	base = raw_map(fd, f->size);
	if (!base)
		return false;
	f->base = base;
	if (!is_elf(f)) {
		munmap(base, f->size);
		return false;
	}
	f->mapped_for_us = !kept_add(&st, f->base);
	return true;
}

bool elf_open(struct elf_file *f, const char *path)
{
	int saved = errno;
	int fd = raw_open(path);
	bool ok = false;

	if (fd >= 0) {
		ok = map_file(f, fd);
		raw_close(fd);
	}
	errno = saved;
	return ok;
}

void elf_close(struct elf_file *f)
{
	int saved = errno;

	if (f->mapped_for_us)
		munmap((void *)f->base, f->size);
	errno = saved;
}

/* A module whose ELF header is not at its start in memory is taken for the file's. */
static bool is_file_of(const struct elf_file *f, const struct module *m)
{
	const void *loaded = (const void *)m->start;

	if (m->start % 4096 || m->end - m->start < sizeof(Elf64_Ehdr) ||
	    memcmp(loaded, ELFMAG, SELFMAG) != 0)
		return true;
	return memcmp(loaded, f->base, sizeof(Elf64_Ehdr)) == 0;
}

static bool open_as(struct elf_file *f, const struct module *m, const char *path)
{
	if (!elf_open(f, path))
		return false;
	if (is_file_of(f, m))
		return true;
	elf_close(f);
	return false;
}

bool elf_open_module(struct elf_file *f, const struct module *m)
{
	struct maps_file mapped;
	char path[ELF_PATH_MAX];

	if (module_is_vdso(m)) {
		*f = (struct elf_file){ .base = (const void *)m->start, .size = m->end - m->start };
		return is_elf(f);
	}
	module_file(m, path, sizeof(path));
	/* /proc/self/exe is the loader if the program was started as its argument. */
	return open_as(f, m, path) || (maps_find(m->start, &mapped) && open_as(f, m, mapped.path));
}

/* Sections */

static bool read_header(const struct elf_file *f, size_t index, Elf64_Shdr *sh)
{
	Elf64_Ehdr eh;

	memcpy(&eh, f->base, sizeof(eh));
	if (eh.e_shentsize != sizeof(*sh) || index >= eh.e_shnum || eh.e_shoff > f->size ||
	    (f->size - eh.e_shoff) / sizeof(*sh) <= index)
		return false;
	memcpy(sh, f->base + eh.e_shoff + index * sizeof(*sh), sizeof(*sh));
	return true;
}

bool elf_section_at(const struct elf_file *f, size_t index, struct elf_section *out)
{
	Elf64_Shdr sh;

	if (!read_header(f, index, &sh) || sh.sh_size == 0 || sh.sh_type == SHT_NOBITS ||
	    (sh.sh_flags & SHF_COMPRESSED) || sh.sh_offset > f->size ||
	    sh.sh_size > f->size - sh.sh_offset)
		return false;
	*out = (struct elf_section){
		.data = f->base + sh.sh_offset,
		.size = sh.sh_size,
		.addr = sh.sh_addr,
		.entry_size = sh.sh_entsize,
		.link = sh.sh_link,
	};
	return true;
}

bool elf_section(const struct elf_file *f, const char *name, struct elf_section *out)
{
	struct elf_section names;
	size_t length = strlen(name) + 1;
	Elf64_Ehdr eh;
	Elf64_Shdr sh;

	memcpy(&eh, f->base, sizeof(eh));
	if (!elf_section_at(f, eh.e_shstrndx, &names))
		return false;
	for (size_t i = 0; read_header(f, i, &sh); i++) {
		if (sh.sh_name < names.size && names.size - sh.sh_name >= length &&
		    memcmp(names.data + sh.sh_name, name, length) == 0)
			return elf_section_at(f, i, out);
	}
	return false;
}

bool elf_section_holds(const struct elf_file *f, size_t index, uint64_t addr)
{
	Elf64_Shdr sh;

	return read_header(f, index, &sh) && addr >= sh.sh_addr && addr - sh.sh_addr < sh.sh_size;
}

struct reader elf_reader(const struct elf_file *f, const char *name)
{
	struct elf_section s;

	if (!elf_section(f, name, &s))
		return (struct reader){ .bad = true };
	return reader_make(s.data, s.size);
}

struct reader elf_build_id(const struct elf_file *f)
{
	struct reader note = elf_reader(f, ".note.gnu.build-id");
	uint32_t name_size = reader_u32(&note);
	uint32_t id_size = reader_u32(&note);

	reader_skip(&note, 4 + (name_size + 3ull) / 4 * 4);
	return reader_cut(&note, id_size);
}

/* Debug information that was split off lies under /usr/lib/debug, by build id. */
bool elf_open_debug(struct elf_file *debug, const struct elf_file *f)
{
	struct reader id = elf_build_id(f);
	char buf[ELF_PATH_MAX];
	struct text path = text_make(buf, sizeof(buf));

	if (id.bad || reader_left(&id) < 2)
		return false;
	text_add(&path, "/usr/lib/debug/.build-id/");
	text_add_hex_byte(&path, reader_u8(&id));
	text_add(&path, "/");
	while (reader_left(&id))
		text_add_hex_byte(&path, reader_u8(&id));
	text_add(&path, ".debug");
	return !path.cut && elf_open(debug, path.at);
}
