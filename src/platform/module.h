/*
 * module.h - which loaded file (program, shared library, vdso) an address belongs to
 *
 * All but module_refresh and module_snapshot is async-signal-safe and takes no lock.
 * See module.c.
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
	const char *path;		/* the loader's name for it, "" for the program, or NULL */
};

/* Finds the module that holds address pc. */
bool module_find(uintptr_t pc, struct module *out);

/*
 * Takes note of what is loaded now. Ordinary code only: the loader's lock is taken.
 * Call it once at start; without it, or with libraries loaded since, module_find
 * still works and is slower.
 */
void module_refresh(void);

/*
 * The file to open in order to read the module, and the name to show for it. They
 * differ for the program: /proc/self/exe can always be opened, but is nobody's idea
 * of its name. Both zero-terminated, cut to size.
 */
void module_file(const struct module *m, char *buf, size_t size);
void module_name(const struct module *m, char *buf, size_t size);

bool module_is_program(const struct module *m);
/* Is this the vdso: no file at all, but a whole ELF image in memory at start? */
bool module_is_vdso(const struct module *m);

/* What is behind module_find and module_refresh, apart for the tests. */
void module_snapshot(void);
bool module_find_by_loader(uintptr_t pc, struct module *out);
bool module_find_in_snapshot(uintptr_t pc, struct module *out);
bool module_find_in_maps(uintptr_t pc, struct module *out);

#endif
