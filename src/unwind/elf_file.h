/*
 * elf_file.h - the sections of ELF files, from disk or from memory
 *
 * Async-signal-safe throughout; errno is kept. See elf_file.c.
 */
#ifndef GORO_ELF_FILE_H
#define GORO_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "module.h"
#include "reader.h"

#define ELF_PATH_MAX 512

struct elf_file {
	const uint8_t *base;
	size_t size;
	bool mapped_for_us;	/* not kept for everybody: elf_close unmaps it */
};

struct elf_section {
	const uint8_t *data;	/* NULL if there is none that can be read as it is */
	size_t size;
	uint64_t addr;		/* in the file's own numbering, without the load bias */
	size_t entry_size;
	size_t link;		/* the section that goes with it: a symbol table's strings */
};

/* Maps the file at path. */
bool elf_open(struct elf_file *f, const char *path);

/* Maps the file that module m was loaded from, if that is still what is there. */
bool elf_open_module(struct elf_file *f, const struct module *m);

/*
 * Maps the file with the debug information that was split off from f, which is
 * module m's, if it is installed.
 */
bool elf_open_debug(struct elf_file *debug, const struct elf_file *f, const struct module *m);

void elf_close(struct elf_file *f);

/* Section by name or by number. Empty sections and compressed ones are not found. */
bool elf_section(const struct elf_file *f, const char *name, struct elf_section *out);
bool elf_section_at(const struct elf_file *f, size_t index, struct elf_section *out);

/* Does section number `index` hold this address, once loaded? */
bool elf_section_holds(const struct elf_file *f, size_t index, uint64_t addr);

/* All of a section; an empty reader if there is no such section. */
struct reader elf_reader(const struct elf_file *f, const char *name);

/* The bytes of the build id, as the linker made it; bad if there is none. */
struct reader elf_build_id(const struct elf_file *f);

#endif
