/* dwarf.h - lines of source, from debug information. Defined in dwarf_line.c. */
#ifndef GORO_DWARF_H
#define GORO_DWARF_H

#include "unwind/elf_file.h"

/* Finds addr, in the file's own numbering, in the line tables of f. Sets *line and path,
 * cut to size. False if there is no line for it: path is "" then, and *line unchanged. */
bool dwarf_line_find(const struct elf_file *f, uint64_t addr, char *path, size_t size, int *line);

#endif
