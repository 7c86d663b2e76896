/*
 * symbol.c - what an address of code is called: function, file, line
 *
 * The function's name comes from the symbol table of the file the code was loaded
 * from (.symtab, or .dynsym if it was stripped), the line from its debug
 * information (dwarf_line.c). If the file lacks them, the debug file that goes with
 * it, if installed, is asked too.
 *
 * Several symbols can cover one address. The best is one whose extent is known to
 * hold the address; then the one that starts last; then a function rather than a
 * bare label, a global name rather than a local one, and of libc's many aliases
 * the one with the fewest underscores in front, which is what the programmer wrote.
 * Hand-written assembly has symbols without an extent: such a one is taken if
 * nothing else begins between it and the address, and its section holds both.
 */
#include "symbol.h"

#include <elf.h>
#include <errno.h>

#include "demangle.h"
#include "dwarf_line.h"
#include "elf_file.h"
#include "module.h"
#include "symbol_cache.h"
#include "text.h"

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

/* The assembler's own marks (on aarch64, "$x" and "$d") name nothing. */
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

/* Names in the full table may carry a version, read@@GLIBC_2.2.5, and those of a compiler's
 * clones what it was made by, find.isra.0. */
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

static void find_in_file(const struct elf_file *f, const struct module *m, uint64_t addr,
			 struct symbol *out)
{
	bool named = find_function(f, ".symtab", addr, out);
	bool placed = dwarf_line_find(f, addr, out->file, sizeof(out->file), &out->line);
	struct elf_file debug;

	if (!named)
		find_function(f, ".dynsym", addr, out);
	if ((named && placed) || !elf_open_debug(&debug, f, m))
		return;
	if (!named)
		find_function(&debug, ".symtab", addr, out);
	if (!placed)
		dwarf_line_find(&debug, addr, out->file, sizeof(out->file), &out->line);
	elf_close(&debug);
}

/* What the answers are kept under: the program stays where it is; the file of a library is
 * opened to make sure that it is the same. 0: they are not kept. */
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
		find_in_file(&f, m, addr, out);
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
