/*
 * module.h - which loaded file (program, shared library, vdso) an address belongs to.
 * All but module_start and module_snapshot is async-signal-safe and takes no lock.
 */
#ifndef GORO_MODULE_H
#define GORO_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct module {
	uintptr_t start;		/* addresses [start, end) */
	uintptr_t end;
	uintptr_t bias;			/* address in memory minus address in the file */
	const uint8_t *eh_frame_hdr;	/* the table of unwind information, or NULL */
	const char *path;		/* the loader's; "": the program; NULL: unknown */
};

/* Finds the module that holds address pc. */
bool module_find(uintptr_t pc, struct module *out);

/* Notes what is loaded now. Called once, at the start, in ordinary code: it takes the
 * loader's lock. module_find is slower for what is loaded later. */
void module_start(void);

/* The file to open to read the module, and the name to show for it, cut to size. They
 * differ for the program: /proc/self/exe can always be opened, but is not the name that
 * its user knows. */
void module_file(const struct module *m, char *buf, size_t size);
void module_name(const struct module *m, char *buf, size_t size);

bool module_is_program(const struct module *m);
/* The vdso has no file, but a whole ELF image in memory at start. */
bool module_is_vdso(const struct module *m);

/* The parts of module_find and module_start, for tests. */
void module_snapshot(void);
bool module_find_by_loader(uintptr_t pc, struct module *out);
bool module_find_in_snapshot(uintptr_t pc, struct module *out);
bool module_find_in_maps(uintptr_t pc, struct module *out);

#endif
