/* dwarf.h - debug information: lines (dwarf_line.c), compilation units (dwarf_unit.c) */
#ifndef GORO_DWARF_H
#define GORO_DWARF_H

#include "unwind/elf_file.h"

/* The sections of debug information; bad readers for those that are not there. */
struct dwarf {
	struct reader info;		/* .debug_info: trees of entries, one per unit */
	struct reader abbrev;		/* .debug_abbrev: the shapes of entries */
	struct reader aranges;		/* .debug_aranges: addresses to units */
	struct reader line;		/* .debug_line: addresses to lines */
	struct reader str;		/* .debug_str: strings */
	struct reader line_str;		/* .debug_line_str: strings of line tables */
};

/* What reading an attribute's value depends on. */
struct dwarf_format {
	const struct dwarf *dwarf;
	unsigned version;
	unsigned offset_size;
	unsigned address_size;
};

struct dwarf_value {
	uint64_t number;
	const char *string;		/* NULL: none, or in another section */
};

#define DWARF_NO_LINES UINT64_MAX

struct dwarf_unit {
	uint64_t lines;			/* offset of its line table, or DWARF_NO_LINES */
	const char *directory;		/* the compiler's working directory, or NULL */
};

void dwarf_sections(struct dwarf *d, const struct elf_file *f);

/* Reads an attribute's value from r. implicit: the value that the entry's shape gives. */
struct dwarf_value dwarf_read_form(struct reader *r, uint64_t form, int64_t implicit,
				   const struct dwarf_format *format);

/* Finds the unit whose code holds addr, by .debug_aranges, which clang leaves out. */
bool dwarf_unit_find(const struct dwarf *d, uint64_t addr, struct dwarf_unit *unit);

/* Finds the unit whose line table is at this offset. */
bool dwarf_unit_with_lines(const struct dwarf *d, uint64_t lines, struct dwarf_unit *unit);

/* Finds addr, in the file's own numbering, in the line tables of f. Sets *line and path,
 * cut to size. False if there is no line for it: path is "" then, and *line unchanged. */
bool dwarf_line_find(const struct elf_file *f, uint64_t addr, char *path, size_t size, int *line);

#endif
