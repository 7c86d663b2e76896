/* elf_file.h - the sections of ELF files, from disk or from memory. Keeps errno. */
#ifndef GORO_ELF_FILE_H
#define GORO_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/module.h"
#include "unwind/reader.h"

#define ELF_PATH_MAX 512
/* Files whose mappings are kept for good. */
#define ELF_KEPT_FILES 64

struct elf_file {
	const uint8_t *base;
	size_t size;
	bool mapped_for_us;	/* not kept: elf_close unmaps it */
};

struct elf_section {
	const uint8_t *data;
	size_t size;
	uint64_t addr;		/* in the file's own numbering, without the load bias */
	size_t entry_size;
	size_t link;		/* a symbol table's section of strings */
};

/* Maps the file at path. */
bool elf_open(struct elf_file *f, const char *path);

/* Maps the file that module m was loaded from, if it is still that file. */
bool elf_open_module(struct elf_file *f, const struct module *m);

/* Maps the debug information split off from f, if it is installed. */
bool elf_open_debug(struct elf_file *debug, const struct elf_file *f);

void elf_close(struct elf_file *f);

/* Finds a section by name or number. Empty and compressed sections are not found. */
bool elf_section(const struct elf_file *f, const char *name, struct elf_section *out);
bool elf_section_at(const struct elf_file *f, size_t index, struct elf_section *out);

/* Does section number `index` hold this address of the file's own numbering? */
bool elf_section_holds(const struct elf_file *f, size_t index, uint64_t addr);

/* All of a section. If there is no such section, the reader is empty and bad. */
struct reader elf_reader(const struct elf_file *f, const char *name);

/* The bytes of the linker's build id. If there is none, the reader is bad. */
struct reader elf_build_id(const struct elf_file *f);

#endif
