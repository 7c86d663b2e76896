/*
 * dwarf_unit.h - compilation units: where their line table is, where they were compiled
 *
 * Async-signal-safe throughout.
 */
#ifndef GORO_DWARF_UNIT_H
#define GORO_DWARF_UNIT_H

#include "elf_file.h"

/* The sections of debug information, each empty if it is not there. */
struct dwarf {
	struct reader info;		/* .debug_info: trees of entries, one per unit */
	struct reader abbrev;		/* .debug_abbrev: the shapes of entries */
	struct reader aranges;		/* .debug_aranges: addresses to units */
	struct reader line;		/* .debug_line: addresses to lines */
	struct reader str;		/* .debug_str, .debug_line_str: strings */
	struct reader line_str;
};

/* What must be known to read an attribute's value. */
struct dwarf_format {
	const struct dwarf *dwarf;
	unsigned version;
	unsigned offset_size;
	unsigned address_size;
};

struct dwarf_value {
	uint64_t number;
	const char *string;		/* NULL if it is none, or lies where we do not look */
};

#define DWARF_NO_LINES UINT64_MAX

struct dwarf_unit {
	uint64_t lines;			/* offset of its line table, or DWARF_NO_LINES */
	const char *directory;		/* where the compiler was run, or NULL */
};

void dwarf_sections(struct dwarf *d, const struct elf_file *f);

/* The value of an attribute, from r. implicit: what the entry's shape says it is. */
struct dwarf_value dwarf_read_form(struct reader *r, uint64_t form, int64_t implicit,
				   const struct dwarf_format *format);

/* The unit whose code holds addr, by .debug_aranges, which not every compiler writes. */
bool dwarf_unit_find(const struct dwarf *d, uint64_t addr, struct dwarf_unit *unit);

/* The unit whose line table is at this offset. */
bool dwarf_unit_with_lines(const struct dwarf *d, uint64_t lines, struct dwarf_unit *unit);

#endif
