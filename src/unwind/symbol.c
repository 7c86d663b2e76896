/*
 * symbol.c - what an address of code is called: function, file, line
 *
 * The function's name comes from the symbol table of the file that the code was loaded
 * from (.symtab, or .dynsym if it was stripped), the line from its debug information
 * (dwarf_line.c). What the file lacks is looked up in its debug file.
 *
 * Several symbols can cover one address. These decide, in this order:
 *
 *  - the symbol's extent holds the address
 *  - it starts last
 *  - it is a function, not a bare label
 *  - it is not local
 *  - it has the fewest underscores in front: of libc's aliases that is the one that the
 *    programmer wrote
 *  - it is global, not weak
 *
 * Symbols of hand-written assembly have no extent. One is taken if no other begins
 * between it and the address, and its section holds the address.
 */
#include "unwind/symbol.h"

#include <elf.h>
#include <errno.h>

#include "unwind/dwarf.h"
#include "unwind/elf_file.h"
#include "platform/module.h"
#include "base/text.h"

struct candidate {
	Elf64_Sym sym;
	const char *name;
	bool covers;		/* the symbol's extent holds the address */
};

static bool is_code(const Elf64_Sym *sym)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
	       sym->st_shndx != SHN_UNDEF;
}

/* The assembler's marks ("$x" and "$d" on aarch64) are no names. */
static bool is_name(const char *name)
{
	return name && name[0] && name[0] != '$' && name[0] != '.';
}

static int underscores(const char *name)
{
	int n = 0;

	while (name[n] == '_')
		n++;
	return n;
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
	unsigned a_bind = ELF64_ST_BIND(a->sym.st_info), b_bind = ELF64_ST_BIND(b->sym.st_info);
	bool a_label = ELF64_ST_TYPE(a->sym.st_info) == STT_NOTYPE;
	bool b_label = ELF64_ST_TYPE(b->sym.st_info) == STT_NOTYPE;

	if (a->covers != b->covers)
		return a->covers;
	if (a->sym.st_value != b->sym.st_value)
		return a->sym.st_value > b->sym.st_value;
	if (a_label != b_label)
		return b_label;
	if ((a_bind == STB_LOCAL) != (b_bind == STB_LOCAL))
		return b_bind == STB_LOCAL;
	if (underscores(a->name) != underscores(b->name))
		return underscores(a->name) < underscores(b->name);
	return a_bind == STB_GLOBAL && b_bind != STB_GLOBAL;
}

static bool find_in_table(const struct elf_file *f, const struct elf_section *table, uint64_t addr,
			  struct candidate *best)
{
	struct candidate c;
	struct elf_section names;
	struct reader r;

	*best = (struct candidate){ .name = NULL };
	if (table->entry_size != sizeof(c.sym) || !elf_section_at(f, table->link, &names))
		return false;
	for (size_t at = 0; table->size - at >= sizeof(c.sym); at += sizeof(c.sym)) {
		memcpy(&c.sym, table->data + at, sizeof(c.sym));
		if (c.sym.st_value > addr || !is_code(&c.sym))
			continue;
		c.covers = addr - c.sym.st_value < c.sym.st_size;
		if (best->name && best->covers > c.covers)
			continue;
		r = reader_make(names.data, names.size);
		reader_skip(&r, c.sym.st_name);
		c.name = reader_string(&r);
		if (is_name(c.name) && (!best->name || is_better(&c, best)))
			*best = c;
	}
	return best->name && (best->covers || (best->sym.st_size == 0 &&
					       elf_section_holds(f, best->sym.st_shndx, addr)));
}

/* A name may end in a version (read@@GLIBC_2.2.5) or, a compiler's clone, in the pass
 * that made it (find.isra.0). Both are cut off. */
static void set_function(struct symbol *out, const struct candidate *c, uint64_t addr)
{
	size_t n = strcspn(c->name, "@.");
	struct text t;

	out->offset = addr - c->sym.st_value;
	if (demangle(c->name, n, out->function, sizeof(out->function)))
		return;
	t = text_make(out->function, sizeof(out->function));
	text_add_bytes(&t, c->name, n);
}

static bool find_function(const struct elf_file *f, const char *table_name, uint64_t addr,
			  struct symbol *out)
{
	struct elf_section table;
	struct candidate best;

	if (!elf_section(f, table_name, &table) || !find_in_table(f, &table, addr, &best))
		return false;
	set_function(out, &best, addr);
	return true;
}

static void find_in_file(const struct elf_file *f, uint64_t addr, struct symbol *out)
{
	bool named = find_function(f, ".symtab", addr, out);
	bool placed = dwarf_line_find(f, addr, out->file, sizeof(out->file), &out->line);
	struct elf_file debug;

	if (!named)
		find_function(f, ".dynsym", addr, out);
	if ((named && placed) || !elf_open_debug(&debug, f))
		return;
	if (!named)
		find_function(&debug, ".symtab", addr, out);
	if (!placed)
		dwarf_line_find(&debug, addr, out->file, sizeof(out->file), &out->line);
	elf_close(&debug);
}

/* The file's key in the cache: where the program is loaded, which does not change, or
 * where a library's file is mapped for good. 0: its answers are not cached. */
static uintptr_t cache_key(const struct module *m, const struct elf_file *f)
{
	if (module_is_program(m))
		return m->start;
	return f && !f->mapped_for_us ? (uintptr_t)f->base : 0;
}

static void find_in_module(const struct module *m, uintptr_t pc, struct symbol *out)
{
	uint64_t addr = pc - m->bias;
	struct elf_file f;
	uintptr_t key;

	out->offset = pc - m->start;
	module_name(m, out->module, sizeof(out->module));
	if (!elf_open_module(&f, m))
		return;
	key = cache_key(m, &f);
	if (!key || !symbol_cache_get(key, addr, out)) {
		find_in_file(&f, addr, out);
		if (key)
			symbol_cache_put(key, addr, out);
	}
	elf_close(&f);
}

bool symbol_find(uintptr_t pc, struct symbol *out)
{
	int saved = errno;
	struct module m;
	uintptr_t key;

	out->function[0] = out->file[0] = out->module[0] = '\0';
	out->offset = 0;
	out->line = 0;
	if (!module_find(pc, &m))
		return false;
	key = cache_key(&m, NULL);
	if (!key || !symbol_cache_get(key, pc - m.bias, out))
		find_in_module(&m, pc, out);
	errno = saved;
	return true;
}
