/*
 * dwarf_unit.c - compilation units: where their line table is, where they were compiled
 *
 * .debug_info is a sequence of units, one per compiled file. A unit is a header and a
 * tree of entries. The root entry describes the file. An entry is the number of its
 * shape, followed by values. The shape, in .debug_abbrev, is a list of attributes with
 * the form of their values. Only root entries are read, for two attributes; the others
 * are read to get past them.
 */
#include "unwind/dwarf.h"

enum {
	AT_stmt_list = 0x10,
	AT_comp_dir = 0x1b,
};

enum {
	UNIT_type = 0x02, UNIT_skeleton = 0x04, UNIT_split_compile = 0x05, UNIT_split_type = 0x06,
};

enum {
	FORM_addr = 0x01, FORM_block2 = 0x03, FORM_block4, FORM_data2, FORM_data4,
	FORM_data8, FORM_string, FORM_block, FORM_block1, FORM_data1, FORM_flag, FORM_sdata,
	FORM_strp, FORM_udata, FORM_ref_addr, FORM_ref1, FORM_ref2, FORM_ref4, FORM_ref8,
	FORM_ref_udata, FORM_indirect, FORM_sec_offset, FORM_exprloc, FORM_flag_present,
	FORM_strx, FORM_addrx, FORM_ref_sup4, FORM_strp_sup, FORM_data16, FORM_line_strp,
	FORM_ref_sig8, FORM_implicit_const, FORM_loclistx, FORM_rnglistx, FORM_ref_sup8,
	FORM_strx1, FORM_strx2, FORM_strx3, FORM_strx4, FORM_addrx1, FORM_addrx2,
	FORM_addrx3, FORM_addrx4, FORM_GNU_addr_index = 0x1f01, FORM_GNU_str_index,
	FORM_GNU_ref_alt = 0x1f20, FORM_GNU_strp_alt,
};

void dwarf_sections(struct dwarf *d, const struct elf_file *f)
{
	d->info = elf_reader(f, ".debug_info");
	d->abbrev = elf_reader(f, ".debug_abbrev");
	d->aranges = elf_reader(f, ".debug_aranges");
	d->line = elf_reader(f, ".debug_line");
	d->str = elf_reader(f, ".debug_str");
	d->line_str = elf_reader(f, ".debug_line_str");
}

static const char *string_at(struct reader section, uint64_t offset)
{
	reader_skip(&section, offset);
	return reader_string(&section);
}

static struct dwarf_value number(uint64_t value)
{
	return (struct dwarf_value){ .number = value };
}

static struct dwarf_value string(const char *value)
{
	return (struct dwarf_value){ .string = value };
}

static struct dwarf_value skip(struct reader *r, uint64_t size)
{
	reader_skip(r, size);
	return number(0);
}

struct dwarf_value dwarf_read_form(struct reader *r, uint64_t form, int64_t implicit,
				   const struct dwarf_format *format)
{
	unsigned offset_size = format->offset_size;
	unsigned address_size = format->address_size;

	switch (form) {
	case FORM_data1: case FORM_flag: case FORM_ref1: case FORM_strx1: case FORM_addrx1:
		return number(reader_u8(r));
	case FORM_data2: case FORM_ref2: case FORM_strx2: case FORM_addrx2:
		return number(reader_u16(r));
	case FORM_strx3: case FORM_addrx3:
		return number(reader_uint(r, 3));
	case FORM_data4: case FORM_ref4: case FORM_ref_sup4: case FORM_strx4: case FORM_addrx4:
		return number(reader_u32(r));
	case FORM_data8: case FORM_ref8: case FORM_ref_sup8: case FORM_ref_sig8:
		return number(reader_u64(r));
	case FORM_addr:
		return number(reader_uint(r, address_size));
	case FORM_sec_offset: case FORM_strp_sup: case FORM_GNU_ref_alt: case FORM_GNU_strp_alt:
		return number(reader_uint(r, offset_size));
	case FORM_ref_addr:
		return number(reader_uint(r, format->version > 2 ? offset_size : address_size));
	case FORM_udata: case FORM_ref_udata: case FORM_strx: case FORM_addrx: case FORM_loclistx:
	case FORM_rnglistx: case FORM_GNU_addr_index: case FORM_GNU_str_index:
		return number(reader_uleb(r));
	case FORM_sdata:
		return number((uint64_t)reader_sleb(r));
	case FORM_implicit_const:
		return number((uint64_t)implicit);
	case FORM_flag_present:
		return number(1);
	case FORM_string:
		return string(reader_string(r));
	case FORM_strp:
		return string(string_at(format->dwarf->str, reader_uint(r, offset_size)));
	case FORM_line_strp:
		return string(string_at(format->dwarf->line_str, reader_uint(r, offset_size)));
	case FORM_block1:
		return skip(r, reader_u8(r));
	case FORM_block2:
		return skip(r, reader_u16(r));
	case FORM_block4:
		return skip(r, reader_u32(r));
	case FORM_block: case FORM_exprloc:
		return skip(r, reader_uleb(r));
	case FORM_data16:
		return skip(r, 16);
	case FORM_indirect:
		form = reader_uleb(r);
		if (form != FORM_indirect)
			return dwarf_read_form(r, form, 0, format);
		break;
	}
	reader_fail(r);
	return number(0);
}

/* Moves `abbrev`, which is at a list of shapes, to the attributes of shape `code`. */
static bool find_shape(struct reader *abbrev, uint64_t code)
{
	for (;;) {
		uint64_t here = reader_uleb(abbrev);
		uint64_t attribute, form;

		if (here == 0)
			return false;
		reader_uleb(abbrev);	/* tag */
		reader_u8(abbrev);	/* has children */
		if (here == code)
			return !abbrev->bad;
		do {
			attribute = reader_uleb(abbrev);
			form = reader_uleb(abbrev);
			if (form == FORM_implicit_const)
				reader_sleb(abbrev);
		} while (attribute || form);
	}
}

/* Reads the root entry at r. abbrev is at the unit's list of shapes. */
static bool read_root(struct reader *r, struct reader abbrev, const struct dwarf_format *format,
		      struct dwarf_unit *unit)
{
	*unit = (struct dwarf_unit){ .lines = DWARF_NO_LINES };
	if (!find_shape(&abbrev, reader_uleb(r)))
		return false;
	for (;;) {
		uint64_t attribute = reader_uleb(&abbrev);
		uint64_t form = reader_uleb(&abbrev);
		int64_t implicit = form == FORM_implicit_const ? reader_sleb(&abbrev) : 0;
		struct dwarf_value v;

		if (!attribute && !form)
			return !abbrev.bad;
		v = dwarf_read_form(r, form, implicit, format);
		if (r->bad)
			return false;
		if (attribute == AT_stmt_list)
			unit->lines = v.number;
		if (attribute == AT_comp_dir)
			unit->directory = v.string;
	}
}

/* Reads the unit at `info`, and moves `info` to the next one. */
static bool read_unit(const struct dwarf *d, struct reader *info, struct dwarf_unit *unit)
{
	struct dwarf_format format = { .dwarf = d, .address_size = 8 };
	uint64_t length = reader_unit_length(info, &format.offset_size);
	struct reader r = reader_cut(info, length);
	struct reader abbrev = d->abbrev;
	uint8_t type = 0;

	format.version = reader_u16(&r);
	if (format.version >= 5) {
		type = reader_u8(&r);
		format.address_size = reader_u8(&r);
	}
	reader_skip(&abbrev, reader_uint(&r, format.offset_size));
	if (format.version < 5)
		format.address_size = reader_u8(&r);
	if (type == UNIT_skeleton || type == UNIT_split_compile)
		reader_skip(&r, 8);
	if (type == UNIT_type || type == UNIT_split_type)
		reader_skip(&r, 8 + format.offset_size);
	return !r.bad && format.address_size <= 8 && read_root(&r, abbrev, &format, unit);
}

/* Reads the address ranges of one unit at `aranges`, which moves to the next unit's. */
static bool set_holds(struct reader *aranges, uint64_t addr, uint64_t *unit_offset)
{
	unsigned offset_size;
	size_t before = reader_left(aranges);
	uint64_t length = reader_unit_length(aranges, &offset_size);
	size_t header = before - reader_left(aranges);
	struct reader r = reader_cut(aranges, length);
	uint16_t version = reader_u16(&r);

	*unit_offset = reader_uint(&r, offset_size);
	if (reader_u8(&r) != 8 || reader_u8(&r) != 0 || version != 2)
		return false;
	/* The pairs are aligned to their size, counted from the start of the set. */
	header += 2 + offset_size + 2;
	reader_skip(&r, -header % 16);
	while (reader_left(&r) >= 16) {
		uint64_t start = reader_u64(&r);
		uint64_t size = reader_u64(&r);

		if (addr - start < size && start != 0)
			return true;
	}
	return false;
}

bool dwarf_unit_find(const struct dwarf *d, uint64_t addr, struct dwarf_unit *unit)
{
	struct reader aranges = d->aranges;
	struct reader info = d->info;
	uint64_t offset;

	while (reader_left(&aranges)) {
		if (!set_holds(&aranges, addr, &offset))
			continue;
		reader_skip(&info, offset);
		return read_unit(d, &info, unit) && unit->lines != DWARF_NO_LINES;
	}
	return false;
}

bool dwarf_unit_with_lines(const struct dwarf *d, uint64_t lines, struct dwarf_unit *unit)
{
	struct reader info = d->info;

	while (reader_left(&info))
		if (read_unit(d, &info, unit) && unit->lines == lines)
			return true;
	return false;
}
