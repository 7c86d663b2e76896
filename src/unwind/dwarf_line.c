/*
 * dwarf_line.c - from an address to the line of source that it was compiled from
 *
 * .debug_line is a sequence of tables, one per compilation unit. A table is stored as a
 * program that produces it: a header with the names of directories and files, then
 * operations that change a row (address, file, line) and emit it. Rows come in sequences
 * of growing addresses. A row holds from its address up to the next row's.
 *
 * .debug_aranges tells the unit of an address, and the unit its table. clang does not
 * write .debug_aranges by default; then every table is run in turn.
 *
 * The header's names are stored in two ways. Up to DWARF 4 they are plain lists: files
 * count from 1, and directory 0 is the compiler's working directory, which only the unit
 * tells. In DWARF 5 the entries of the lists have forms, as attributes have: files count
 * from 0, and directory 0 is in the list.
 */
#include "unwind/dwarf.h"

#include "base/text.h"

enum {
	LNS_copy = 1, LNS_advance_pc, LNS_advance_line, LNS_set_file, LNS_set_column,
	LNS_negate_stmt, LNS_set_basic_block, LNS_const_add_pc, LNS_fixed_advance_pc,
	LNS_set_prologue_end, LNS_set_epilogue_begin, LNS_set_isa, LNE_end_sequence = 1,
	LNE_set_address, LNCT_path = 1, LNCT_directory_index,
};

struct table {
	struct dwarf_format format;
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

struct search {
	uint64_t addr;
	struct row row;			/* being put together */
	struct row last;		/* the row emitted before, if in_sequence */
	bool in_sequence;		/* the sequence has emitted a row */
	bool dropped;			/* the linker left out the sequence's code */
	bool found;			/* last is the answer */
};

/*
 * Running the table
 */

static void restart(struct search *s)
{
	s->row = (struct row){ .file = 1, .line = 1 };
	s->in_sequence = false;
}

static void emit(struct search *s)
{
	if (!s->in_sequence)
		s->dropped = s->row.address == 0;	/* no code is there */
	else if (!s->dropped && s->addr >= s->last.address && s->addr < s->row.address)
		s->found = true;
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

static bool run(const struct table *t, uint64_t addr, struct row *row)
{
	struct search s = { .addr = addr };
	struct reader r = t->program;

	restart(&s);
	while (reader_left(&r) && !s.found)
		run_one(&s, t, reader_u8(&r), &r);
	*row = s.last;
	return s.found && row->line > 0 && row->line <= INT32_MAX;
}

/* Reads the table at `line`, and moves `line` to the next one. */
static bool read_table(const struct dwarf *d, struct reader *line, struct table *t)
{
	unsigned offset_size;
	uint64_t length = reader_unit_length(line, &offset_size);
	struct reader r = reader_cut(line, length);

	t->format = (struct dwarf_format){
		.dwarf = d,
		.version = reader_u16(&r),
		.offset_size = offset_size,
		.address_size = 8,
	};
	if (t->format.version < 2 || t->format.version > 5)
		return false;
	if (t->format.version >= 5) {
		t->format.address_size = reader_u8(&r);
		reader_u8(&r);			/* size of segment selectors */
	}
	t->names = reader_cut(&r, reader_uint(&r, offset_size));
	t->program = r;
	t->min_instruction = reader_u8(&t->names);
	if (t->format.version >= 4)
		reader_u8(&t->names);		/* operations per instruction: one */
	reader_u8(&t->names);			/* are rows statements? */
	t->line_base = (int8_t)reader_u8(&t->names);
	t->line_range = reader_u8(&t->names);
	t->opcode_base = reader_u8(&t->names);
	if (t->line_range == 0 || t->opcode_base == 0 || t->format.address_size > 8)
		return false;
	t->operand_counts = reader_cut(&t->names, t->opcode_base - 1u).at;
	return !t->names.bad && !r.bad;
}

/*
 * Names
 */

struct entry {
	const char *path;
	uint64_t directory;
};

/* Finds entry number `wanted` of a list with forms. If there is none, r moves past it. */
static bool find_entry(struct reader *r, const struct dwarf_format *format, uint64_t wanted,
		       struct entry *e)
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
			struct dwarf_value v = dwarf_read_form(r, reader_uleb(&shape), 0, format);

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

/* Adds path by components: "." adds nothing, ".." removes the last one. An absolute path
 * replaces all. */
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

	find_entry(&files, &t->format, UINT64_MAX, &e);
	if (!find_entry(&files, &t->format, file, &e))
		return;
	if (find_entry(&dirs, &t->format, 0, &root))
		add_path(out, root.path);
	dirs = t->names;
	if (e.directory != 0 && find_entry(&dirs, &t->format, e.directory, &dir))
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

static void name_file_4(const struct table *t, uint64_t file, const char *directory,
			struct text *out)
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
	if (directory)
		add_path(out, directory);
	dir = find_string(&dirs, dir_index);
	if (dir)
		add_path(out, dir);
	add_path(out, name);
}

/* unit: the table's, or NULL if it is not known yet. */
static void name_file(const struct table *t, uint64_t lines, const struct dwarf_unit *unit,
		      uint64_t file, struct text *out)
{
	struct dwarf_unit found = { .directory = NULL };

	if (t->format.version >= 5) {
		name_file_5(t, file, out);
		return;
	}
	if (!unit && dwarf_unit_with_lines(t->format.dwarf, lines, &found))
		unit = &found;
	name_file_4(t, file, unit ? unit->directory : NULL, out);
}

/*
 * The search
 */

/* Searches the table at offset `lines`. */
static bool find_in_table(const struct dwarf *d, uint64_t lines, const struct dwarf_unit *unit,
			  uint64_t addr, struct text *path, int *line)
{
	struct reader r = d->line;
	struct table t;
	struct row row;

	reader_skip(&r, lines);
	if (!read_table(d, &r, &t) || !run(&t, addr, &row))
		return false;
	*line = (int)row.line;
	name_file(&t, lines, unit, row.file, path);
	return true;
}

static bool find_in_all_tables(const struct dwarf *d, uint64_t addr, struct text *path, int *line)
{
	for (struct reader r = d->line; reader_left(&r);) {
		uint64_t lines = (uint64_t)(r.at - d->line.at);
		unsigned offset_size;

		reader_skip(&r, reader_unit_length(&r, &offset_size));
		if (find_in_table(d, lines, NULL, addr, path, line))
			return true;
	}
	return false;
}

bool dwarf_line_find(const struct elf_file *f, uint64_t addr, char *path, size_t size, int *line)
{
	struct text text = text_make(path, size);
	struct dwarf d;
	struct dwarf_unit unit;

	dwarf_sections(&d, f);
	if (dwarf_unit_find(&d, addr, &unit) &&
	    find_in_table(&d, unit.lines, &unit, addr, &text, line))
		return true;
	return find_in_all_tables(&d, addr, &text, line);
}
