/*
 * eh_frame.c - the unwind records of a module: finding the one for an instruction
 *
 * .eh_frame holds an FDE (frame description entry) per function; many of them
 * share a CIE (common information entry). .eh_frame_hdr points at the FDEs,
 * sorted by address, for a binary search.
 *
 *	.eh_frame_hdr  version | encodings | &.eh_frame | count | { function, FDE }...
 *	CIE            length | 0 | version | augmentation | factors | return column |
 *	               augmentation data | program
 *	FDE            length | distance back to its CIE | function | its size |
 *	               augmentation data | program
 *
 * These are trusted to be what the linker wrote: the loader has mapped them. Still no
 * read leaves its record, records must lie in the module, and anything unknown makes the
 * lookup fail.
 */
#include "unwind/eh_frame.h"

#include "platform/atomic.h"
#include "unwind/elf_file.h"
#include "unwind/regs.h"

/* Pointer encodings: four bits of format, then three bits of what it is relative to. */
enum {
	ENC_ABSPTR = 0x00, ENC_ULEB = 0x01, ENC_UDATA2 = 0x02, ENC_UDATA4 = 0x03, ENC_UDATA8 = 0x04,
	ENC_SIGNED = 0x08, ENC_SLEB = 0x09, ENC_SDATA2 = 0x0a, ENC_SDATA4 = 0x0b, ENC_SDATA8 = 0x0c,
	ENC_FORMAT = 0x0f,
	ENC_PCREL = 0x10, ENC_DATAREL = 0x30, ENC_RELATIVE_TO = 0x70,
	ENC_OMIT = 0xff,
};

#define HDR_ENTRY_SIZE 8

uintptr_t eh_frame_pointer(struct reader *r, uint8_t enc, const uint8_t *data)
{
	uintptr_t field = (uintptr_t)r->at;
	uintptr_t value;

	switch (enc & ENC_FORMAT) {
	case ENC_ABSPTR:
	case ENC_SIGNED:
	case ENC_UDATA8:
	case ENC_SDATA8: value = reader_u64(r); break;
	case ENC_ULEB: value = reader_uleb(r); break;
	case ENC_SLEB: value = (uintptr_t)reader_sleb(r); break;
	case ENC_UDATA2: value = reader_u16(r); break;
	case ENC_SDATA2: value = (uintptr_t)(intptr_t)(int16_t)reader_u16(r); break;
	case ENC_UDATA4: value = reader_u32(r); break;
	case ENC_SDATA4: value = (uintptr_t)(intptr_t)(int32_t)reader_u32(r); break;
	default: reader_fail(r); return 0;
	}
	switch (enc & ENC_RELATIVE_TO) {
	case ENC_ABSPTR: return value;
	case ENC_PCREL: return value + field;
	case ENC_DATAREL: return value + (uintptr_t)data;
	default: reader_fail(r); return 0;
	}
}

/* The module from address p on. */
static struct reader module_reader(const struct module *m, uintptr_t p)
{
	if (p < m->start || p >= m->end)
		return (struct reader){ .bad = true };
	return reader_make((const void *)p, m->end - p);
}

/* Reads the body of the CIE or FDE at p. *id is its second field, at *id_at: an FDE's
 * distance to its CIE is counted from there. False at the end of the section. */
static bool read_record(const struct module *m, uintptr_t p, struct reader *body, uint32_t *id,
			uintptr_t *id_at)
{
	struct reader r = module_reader(m, p);
	unsigned offset_size;
	uint64_t length = reader_unit_length(&r, &offset_size);

	*body = reader_cut(&r, length);
	*id_at = (uintptr_t)body->at;
	*id = reader_u32(body);
	return length != 0 && !body->bad;
}

static void read_augmentation(struct eh_cie *cie, const char *letter, struct reader data)
{
	uint8_t enc;

	for (; *letter; letter++) {
		switch (*letter) {
		case 'R': cie->fde_encoding = reader_u8(&data); break;
		case 'L': reader_u8(&data); break;
		case 'P': enc = reader_u8(&data); eh_frame_pointer(&data, enc, NULL); break;
		case 'S': cie->signal_frame = true; break;
		case 'B': break;	/* another signing key */
		default: return;	/* the end of the data is known */
		}
	}
}

static bool read_cie(const struct module *m, uintptr_t p, struct eh_cie *cie)
{
	struct reader r;
	uintptr_t id_at;
	uint32_t id;
	uint8_t version;
	const char *augmentation;

	if (!read_record(m, p, &r, &id, &id_at) || id != 0)
		return false;
	version = reader_u8(&r);
	augmentation = reader_string(&r);
	if (!augmentation || (version != 1 && version != 3))
		return false;
	*cie = (struct eh_cie){ .fde_encoding = ENC_ABSPTR };
	cie->code_factor = reader_uleb(&r);
	cie->data_factor = reader_sleb(&r);
	cie->ra_column = version == 1 ? reader_u8(&r) : reader_uleb(&r);
	if (augmentation[0] == 'z') {
		uint64_t size = reader_uleb(&r);

		cie->has_data = true;
		read_augmentation(cie, augmentation + 1, reader_cut(&r, size));
	} else if (augmentation[0]) {
		return false;		/* data of unknown size precedes the program */
	}
	cie->program = r;
	return !r.bad && cie->ra_column < UNWIND_NREG;
}

static bool read_fde(const struct module *m, uintptr_t p, struct eh_fde *fde)
{
	struct reader r;
	uintptr_t id_at;
	uint32_t id;

	if (!read_record(m, p, &r, &id, &id_at) || id == 0 || !read_cie(m, id_at - id, &fde->cie))
		return false;
	fde->start = eh_frame_pointer(&r, fde->cie.fde_encoding, NULL);
	fde->size = eh_frame_pointer(&r, fde->cie.fde_encoding & ENC_FORMAT, NULL);
	if (fde->cie.has_data)
		reader_skip(&r, reader_uleb(&r));
	fde->program = r;
	return !r.bad;
}

static bool fde_holds(const struct eh_fde *fde, uintptr_t pc)
{
	return pc >= fde->start && pc - fde->start < fde->size;
}

/* Field 0 (function) or 1 (FDE) of an entry, stored relative to .eh_frame_hdr. */
static uintptr_t hdr_field(const struct module *m, const uint8_t *table, size_t entry, size_t field)
{
	int32_t value;

	memcpy(&value, table + entry * HDR_ENTRY_SIZE + field * sizeof(value), sizeof(value));
	return (uintptr_t)m->eh_frame_hdr + (uintptr_t)(intptr_t)value;
}

/* By the last entry of the sorted table that starts at or before pc. */
static bool find_by_search(const struct module *m, const uint8_t *table, size_t count,
			   uintptr_t pc, struct eh_fde *fde)
{
	size_t lo = 0, hi = count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (hdr_field(m, table, mid, 0) <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0)
		return false;
	return read_fde(m, hdr_field(m, table, lo - 1, 1), fde) && fde_holds(fde, pc);
}

/* Where scans, which are slow, have found FDEs, by a hash of pc. A note is a hint: it is
 * read as any record is, and its function must hold pc. */
static uintptr_t notes[1024];

static uintptr_t *note_for(uintptr_t pc)
{
	return &notes[(pc ^ pc >> 10) % 1024];
}

static bool find_by_note(const struct module *m, uintptr_t pc, struct eh_fde *fde)
{
	return read_fde(m, load_relaxed(note_for(pc)), fde) && fde_holds(fde, pc);
}

/* Reads .eh_frame from p on, record by record: some linkers leave out the sorted table or
 * write one of another shape. */
static bool find_by_scan(const struct module *m, uintptr_t p, uintptr_t pc, struct eh_fde *fde)
{
	struct reader body;
	uintptr_t id_at;
	uint32_t id;

	while (read_record(m, p, &body, &id, &id_at)) {
		if (id != 0 && read_fde(m, p, fde) && fde_holds(fde, pc)) {
			store_relaxed(note_for(pc), p);
			return true;
		}
		p = (uintptr_t)body.end;
	}
	return false;
}

static bool find_by_header(const struct module *m, uintptr_t pc, struct eh_fde *fde)
{
	struct reader r = module_reader(m, (uintptr_t)m->eh_frame_hdr);
	uint8_t version = reader_u8(&r);
	uint8_t section_enc = reader_u8(&r);
	uint8_t count_enc = reader_u8(&r);
	uint8_t table_enc = reader_u8(&r);
	uintptr_t section = eh_frame_pointer(&r, section_enc, m->eh_frame_hdr);
	uintptr_t count = 0;

	if (count_enc != ENC_OMIT)
		count = eh_frame_pointer(&r, count_enc, m->eh_frame_hdr);
	if (r.bad || version != 1)
		return false;
	if (table_enc == (ENC_DATAREL | ENC_SDATA4) && count > 0 &&
	    count <= reader_left(&r) / HDR_ENTRY_SIZE)
		return find_by_search(m, r.at, count, pc, fde);
	return find_by_note(m, pc, fde) || find_by_scan(m, section, pc, fde);
}

/* Statically linked programs often have no .eh_frame_hdr. Only the section table of the
 * file, which is not loaded, tells where their .eh_frame is. */
static bool find_by_file(const struct module *m, uintptr_t pc, struct eh_fde *fde)
{
	struct elf_file f;
	struct elf_section s;
	bool found;

	if (find_by_note(m, pc, fde))
		return true;
	if (!elf_open_module(&f, m))
		return false;
	found = elf_section(&f, ".eh_frame", &s) && find_by_scan(m, m->bias + s.addr, pc, fde);
	elf_close(&f);
	return found;
}

bool eh_frame_find(const struct module *m, uintptr_t pc, struct eh_fde *fde)
{
	return m->eh_frame_hdr ? find_by_header(m, pc, fde) : find_by_file(m, pc, fde);
}
