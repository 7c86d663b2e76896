/*
 * dwarf_line.c - from an address to the line of source that it was compiled from
 *
 * .debug_line is a sequence of tables, one per compilation unit. A table is stored as a
 * program that produces it: a header with the names of directories and files, then
 * operations that change a row (address, file, line) and emit it. Rows come in sequences
 * of growing addresses. A row holds from its address up to the next row's.
 *
 * The first lookup in a file runs all its tables and notes which code each sequence is of
 * (struct index); later ones run one table. Rejected: the section that lists the address
 * ranges of units: clang leaves it out, and it leads to a table only by way of the units.
 *
 * The header's names are stored in two ways. Up to DWARF 4 they are plain lists: files
 * count from 1, and names are relative to the compiler's working directory, which only
 * the units tell. They stay so. In DWARF 5 the entries of the lists have forms, as
 * attributes have: files count from 0, and directory 0, the first, is absolute.
 */
#include "unwind/dwarf.h"

#include "platform/atomic.h"
#include "base/bytes.h"
#include "base/text.h"

enum {
	LNS_copy = 1, LNS_advance_pc, LNS_advance_line, LNS_set_file, LNS_set_column,
	LNS_negate_stmt, LNS_set_basic_block, LNS_const_add_pc, LNS_fixed_advance_pc,
	LNS_set_prologue_end, LNS_set_epilogue_begin, LNS_set_isa, LNE_end_sequence = 1,
	LNE_set_address, LNCT_path = 1, LNCT_directory_index,
};

enum {
	FORM_block2 = 0x03, FORM_block4, FORM_data2, FORM_data4, FORM_data8, FORM_string,
	FORM_block, FORM_block1, FORM_data1, FORM_flag, FORM_sdata, FORM_strp, FORM_udata,
	FORM_sec_offset = 0x17, FORM_strx = 0x1a, FORM_data16 = 0x1e, FORM_line_strp,
	FORM_strx1 = 0x25, FORM_strx2, FORM_strx3, FORM_strx4,
};

/* The sections that are read; bad readers for those that are not there. */
struct sections {
	struct reader line, str, line_str;
};

struct table {
	const struct sections *in;
	unsigned version;
	unsigned offset_size;
	uint8_t min_instruction;	/* unit of address advances */
	int8_t line_base;
	uint8_t line_range;
	uint8_t opcode_base;
	const uint8_t *operand_counts;	/* of operations 1 to opcode_base - 1 */
	struct reader names;		/* directories and files */
	struct reader program;
};

struct row {
	uint64_t address;
	uint64_t file;
	int64_t line;
};

/* The code from lo to hi, and the offset of the table that has it. */
struct sequence {
	uint64_t lo, hi, lines;
};

struct search {
	uint64_t addr;
	struct row row;			/* being put together */
	struct row last;		/* the row emitted before, if in_sequence */
	uint64_t first;			/* the address of the sequence's first row */
	bool in_sequence;		/* the sequence has emitted a row */
	bool dropped;			/* the linker left out the sequence's code */
	bool found;			/* last is the answer */
	struct bytes *notes;		/* gets a struct sequence of each; or NULL */
	uint64_t lines;			/* the table's offset */
};

/* Running the table */

static void restart(struct search *s)
{
	s->row = (struct row){ .file = 1, .line = 1 };
	s->in_sequence = false;
}

static void emit(struct search *s)
{
	if (!s->in_sequence) {
		s->first = s->row.address;
		s->dropped = s->first == 0;	/* no code is there */
	} else if (!s->dropped && s->addr >= s->last.address && s->addr < s->row.address) {
		s->found = true;
	}
	if (s->found)
		return;
	s->last = s->row;
	s->in_sequence = true;
}

static void run_extended(struct search *s, struct reader *r)
{
	struct reader op = reader_cut(r, reader_uleb(r));

	switch (reader_u8(&op)) {
	case LNE_end_sequence:
		emit(s);
		if (s->notes && !s->dropped)
			bytes_add(s->notes, &(struct sequence){ s->first, s->row.address, s->lines },
			          sizeof(struct sequence));
		restart(s);
		break;
	case LNE_set_address:
		s->row.address = reader_uint(&op, reader_left(&op) < 8 ? reader_left(&op) : 8);
		break;
	}
}

static void run_special(struct search *s, const struct table *t, uint8_t op, bool emits)
{
	unsigned n = op - t->opcode_base;

	s->row.address += (uint64_t)(n / t->line_range) * t->min_instruction;
	if (emits) {
		s->row.line += t->line_base + (int)(n % t->line_range);
		emit(s);
	}
}

static void run_one(struct search *s, const struct table *t, uint8_t op, struct reader *r)
{
	if (op >= t->opcode_base) {
		run_special(s, t, op, true);
		return;
	}
	switch (op) {
	case 0: run_extended(s, r); break;
	case LNS_copy: emit(s); break;
	case LNS_advance_pc: s->row.address += reader_uleb(r) * t->min_instruction; break;
	case LNS_advance_line: s->row.line += (int32_t)reader_sleb(r); break;
	case LNS_set_file: s->row.file = reader_uleb(r); break;
	case LNS_const_add_pc: run_special(s, t, 255, false); break;
	case LNS_fixed_advance_pc: s->row.address += reader_u16(r); break;
	default: /* changes neither address nor line: skip its operands */
		for (int n = t->operand_counts[op - 1]; n > 0; n--)
			reader_uleb(r);
	}
}

static void run(const struct table *t, struct search *s)
{
	struct reader r = t->program;

	restart(s);
	while (reader_left(&r) && !s->found)
		run_one(s, t, reader_u8(&r), &r);
}

/* Reads the table at `line`, and moves `line` to the next one. */
static bool read_table(const struct sections *in, struct reader *line, struct table *t)
{
	unsigned offset_size;
	uint64_t length = reader_unit_length(line, &offset_size);
	struct reader r = reader_cut(line, length);

	*t = (struct table){ .in = in, .version = reader_u16(&r), .offset_size = offset_size };
	if (t->version < 2 || t->version > 5)
		return false;
	if (t->version >= 5)
		reader_skip(&r, 2);	/* sizes of addresses and of segment selectors */
	t->names = reader_cut(&r, reader_uint(&r, offset_size));
	t->program = r;
	t->min_instruction = reader_u8(&t->names);
	if (t->version >= 4)
		reader_u8(&t->names);		/* operations per instruction: one */
	reader_u8(&t->names);			/* are rows statements? */
	t->line_base = (int8_t)reader_u8(&t->names);
	t->line_range = reader_u8(&t->names);
	t->opcode_base = reader_u8(&t->names);
	if (t->line_range == 0 || t->opcode_base == 0)
		return false;
	t->operand_counts = reader_cut(&t->names, t->opcode_base - 1u).at;
	return !t->names.bad && !r.bad;
}

/* Names */

/* A value of an entry: a number or, if it is known, a string. */
struct value {
	uint64_t number;
	const char *string;
};

static struct value string_at(struct reader section, uint64_t offset)
{
	reader_skip(&section, offset);
	return (struct value){ .string = reader_string(&section) };
}

static struct value read_form(struct reader *r, uint64_t form, const struct table *t)
{
	struct value v = { .number = 0 };

	switch (form) {
	case FORM_data1: case FORM_flag: case FORM_strx1: v.number = reader_u8(r); break;
	case FORM_data2: case FORM_strx2: v.number = reader_u16(r); break;
	case FORM_strx3: v.number = reader_uint(r, 3); break;
	case FORM_data4: case FORM_strx4: v.number = reader_u32(r); break;
	case FORM_data8: v.number = reader_u64(r); break;
	case FORM_udata: case FORM_strx: v.number = reader_uleb(r); break;
	case FORM_sdata: v.number = (uint64_t)reader_sleb(r); break;
	case FORM_sec_offset: v.number = reader_uint(r, t->offset_size); break;
	case FORM_string: v.string = reader_string(r); break;
	case FORM_strp: return string_at(t->in->str, reader_uint(r, t->offset_size));
	case FORM_line_strp: return string_at(t->in->line_str, reader_uint(r, t->offset_size));
	case FORM_block1: reader_skip(r, reader_u8(r)); break;
	case FORM_block2: reader_skip(r, reader_u16(r)); break;
	case FORM_block4: reader_skip(r, reader_u32(r)); break;
	case FORM_block: reader_skip(r, reader_uleb(r)); break;
	case FORM_data16: reader_skip(r, 16); break;
	default: reader_fail(r);
	}
	return v;
}

struct entry {
	const char *path;
	uint64_t directory;
};

/* Finds entry number `wanted` of a list with forms. If there is none, r moves past it. */
static bool find_entry(struct reader *r, const struct table *t, uint64_t wanted, struct entry *e)
{
	uint8_t formats = reader_u8(r);
	struct reader shapes = *r, shape;
	uint64_t count;

	for (unsigned i = 0; i < 2u * formats; i++)
		reader_uleb(r);
	count = reader_uleb(r);
	if (count > reader_left(r))		/* an entry takes a byte at least */
		reader_fail(r);
	for (uint64_t n = 0; n < count && !r->bad; n++) {
		*e = (struct entry){ .path = NULL };
		shape = shapes;
		for (unsigned i = 0; i < formats; i++) {
			uint64_t content = reader_uleb(&shape);
			struct value v = read_form(r, reader_uleb(&shape), t);

			if (content == LNCT_path)
				e->path = v.string;
			if (content == LNCT_directory_index)
				e->directory = v.number;
		}
		if (n == wanted)
			return e->path && !r->bad;
	}
	return false;
}

/* Adds path, without "." and "..", by components. An absolute path replaces all. */
static void add_path(struct text *t, const char *path)
{
	if (path[0] == '/')
		text_shorten(t, 0);
	while (*path) {
		bool absolute = path[0] == '/' || t->length > 0;
		size_t n = strcspn(path += path[0] == '/', "/");
		const char *slash = strrchr(t->at, '/');

		if (n == 2 && path[0] == '.' && path[1] == '.' && slash) {
			text_shorten(t, (size_t)(slash - t->at));
		} else if (n > 0 && !(n == 1 && path[0] == '.')) {
			if (absolute)
				text_add(t, "/");
			text_add_bytes(t, path, n);
		}
		path += n;
	}
}

static void name_file_5(const struct table *t, uint64_t file, struct text *out)
{
	struct reader dirs = t->names, files = t->names;
	struct entry e, root, dir;

	find_entry(&files, t, UINT64_MAX, &e);
	if (!find_entry(&files, t, file, &e))
		return;
	if (find_entry(&dirs, t, 0, &root))
		add_path(out, root.path);
	dirs = t->names;
	if (e.directory != 0 && find_entry(&dirs, t, e.directory, &dir))
		add_path(out, dir.path);
	add_path(out, e.path);
}

/* String number n, from 1, of a list that an empty string ends. r moves past the list. */
static const char *find_string(struct reader *r, uint64_t n)
{
	const char *found = NULL, *s;

	for (uint64_t i = 1; (s = reader_string(r)) && *s; i++)
		if (i == n)
			found = s;
	return found;
}

static void name_file_4(const struct table *t, uint64_t file, struct text *out)
{
	struct reader r = t->names, dirs = t->names;
	const char *name = NULL, *dir;
	uint64_t dir_index = 0;

	find_string(&r, 0);
	for (uint64_t i = 0; i < file; i++) {
		name = reader_string(&r);
		if (!name || !*name)
			return;
		dir_index = reader_uleb(&r);
		reader_uleb(&r);		/* time */
		reader_uleb(&r);		/* size */
	}
	if (!name)
		return;
	dir = find_string(&dirs, dir_index);
	if (dir)
		add_path(out, dir);
	add_path(out, name);
}

/* The search */

/* Searches the table at offset `lines`. */
static bool find_in_table(const struct sections *in, uint64_t lines, uint64_t addr,
			  struct text *path, int *line)
{
	struct search s = { .addr = addr };
	struct reader r = in->line;
	struct table t;

	reader_skip(&r, lines);
	if (!read_table(in, &r, &t))
		return false;
	run(&t, &s);
	if (!s.found || s.last.line <= 0 || s.last.line > INT32_MAX)
		return false;
	*line = (int)s.last.line;
	if (t.version >= 5)
		name_file_5(&t, s.last.file, path);
	else
		name_file_4(&t, s.last.file, path);
	return true;
}

/* Of a file that stays mapped (elf_file.c). A thread claims an index by compare and swap
 * and never waits for another: it may be a signal handler. */
static struct index {
	const uint8_t *of;		/* the file's base; atomic */
	uint32_t is_whole;		/* atomic */
	struct bytes sequences;
} indexes[ELF_KEPT_FILES];

static void index_fill(struct bytes *notes, const struct sections *in)
{
	struct search s = { .addr = UINT64_MAX, .notes = notes };
	struct table t;

	for (struct reader r = in->line; reader_left(&r);) {
		s.lines = (uint64_t)(r.at - in->line.at);
		if (read_table(in, &r, &t))
			run(&t, &s);
	}
}

/* NULL: another thread makes it just now. */
static const struct index *index_of(const struct elf_file *f, const struct sections *in)
{
	for (int i = 0; i < ELF_KEPT_FILES; i++) {
		struct index *x = &indexes[i];
		const uint8_t *none = NULL;

		if (cas_relaxed(&x->of, &none, f->base)) {
			index_fill(&x->sequences, in);
			/* release: the sequences; pairs with load_acquire below */
			store_release(&x->is_whole, 1);
			return x;
		}
		if (none == f->base)
			return load_acquire(&x->is_whole) ? x : NULL;
	}
	return NULL;
}

static bool find_in(const struct bytes *sequences, const struct sections *in, uint64_t addr,
		    struct text *path, int *line)
{
	const struct sequence *q = (const void *)sequences->at;

	for (size_t i = 0; i < sequences->n / sizeof *q; i++)
		if (addr >= q[i].lo && addr < q[i].hi && find_in_table(in, q[i].lines, addr, path, line))
			return true;
	return false;
}

bool dwarf_line_find(const struct elf_file *f, uint64_t addr, char *path, size_t size, int *line)
{
	struct text text = text_make(path, size);
	struct sections in = {
		.line = elf_reader(f, ".debug_line"), .str = elf_reader(f, ".debug_str"),
		.line_str = elf_reader(f, ".debug_line_str"),
	};
	const struct index *x = f->mapped_for_us || in.line.bad ? NULL : index_of(f, &in);
	struct bytes own = { .at = NULL };
	bool found;

	if (in.line.bad)
		return false;
	if (x)
		return find_in(&x->sequences, &in, addr, &text, line);
	index_fill(&own, &in);
	found = find_in(&own, &in, addr, &text, line);
	bytes_free(&own);
	return found;
}
