/*
 * dwarf_line.h - from an address to the line of source it was compiled from
 */
#ifndef GORO_DWARF_LINE_H
#define GORO_DWARF_LINE_H

#include "elf_file.h"

/*
 * Finds addr, in the file's own numbering, in the line tables of f. Sets *line and
 * fills `path`, cut to size. False, and nothing changed, if there is no line for
 * it. Async-signal-safe.
 */
bool dwarf_line_find(const struct elf_file *f, uint64_t addr, char *path, size_t size, int *line);

#endif
