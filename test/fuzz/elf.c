/* elf.c - files with symbols and debug information. The first 8 bytes are the address
 * that is looked for. */
#include "platform/module.h"

#include "fuzz.h"

#define symbol_find fuzz_symbol_find
#include "../../src/unwind/symbol.c"
#undef symbol_find

void fuzz_elf(const uint8_t *data, size_t n)
{
	struct elf_file f;
	struct symbol s = { .line = 0 };
	uint8_t *file;
	uint64_t addr;
	struct reader id;

	if (n < 8 + sizeof(Elf64_Ehdr) || memcmp(data + 8, ELFMAG, SELFMAG) != 0)
		return;
	memcpy(&addr, data, 8);
	n -= 8;
	file = malloc(n);
	memcpy(file, data + 8, n);
	f = (struct elf_file){ .base = file, .size = n };
	find_function(&f, ".symtab", addr, &s);
	find_function(&f, ".dynsym", addr, &s);
	dwarf_line_find(&f, addr, s.file, sizeof s.file, &s.line);
	id = elf_build_id(&f);
	while (reader_left(&id))
		reader_u8(&id);
	free(file);
}
