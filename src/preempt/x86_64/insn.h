/*
 * insn.h (x86-64) - where an instruction ends, and which registers it writes.
 *
 * An instruction is: prefixes, an opcode in one of a few maps, a ModRM byte with an
 * address, an immediate operand. Which parts there are depends on the opcode alone.
 * Whatever is not known here fails; nothing is guessed.
 */
#ifndef GORO_ARCH_INSN_H
#define GORO_ARCH_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INSN_BYTES_MAX 15

enum insn_map { INSN_ONE_BYTE, INSN_0F, INSN_0F38, INSN_0F3A };

struct insn {
	const uint8_t *start, *end;
	const uint8_t *imm;	/* the immediate operand, or where it would be */
	enum insn_map map;
	uint8_t opcode;
	uint8_t rex;		/* 0: there is none */
	uint8_t modrm;		/* if has_modrm */
	bool has_modrm;
	bool operand16;		/* prefix 66 */
	bool vector;		/* VEX or EVEX: writes no general register */
};

/* ------------------------------------------------------------------ length */

static inline bool insn_in(uint8_t op, uint8_t first, uint8_t last)
{
	return op >= first && op <= last;
}

static inline bool insn_is_prefix(uint8_t b)
{
	return b == 0x66 || b == 0x67 || b == 0xf2 || b == 0xf3 || b == 0xf0 || b == 0x2e ||
	       b == 0x36 || b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65;
}

/* There is no such instruction in 64-bit mode, or it is not known here. */
static inline bool insn_is_unknown(enum insn_map map, uint8_t op)
{
	if (map == INSN_0F)
		return op == 0x04 || op == 0x0a || op == 0x0c || op == 0x0f || insn_in(op, 0x24, 0x27) ||
		       op == 0x36 || op == 0x39 || insn_in(op, 0x3b, 0x3f) || op == 0x78;
	if (map != INSN_ONE_BYTE)
		return false;
	return (op < 0x40 && (op & 7) >= 6) || insn_in(op, 0x60, 0x62) || op == 0x82 || op == 0x9a ||
	       op == 0xc4 || op == 0xc5 || op == 0xce || insn_in(op, 0xd4, 0xd6) || op == 0xea;
}

static inline bool insn_has_modrm(enum insn_map map, uint8_t op)
{
	if (map == INSN_0F)
		return !(insn_in(op, 0x05, 0x0c) || op == 0x0e || insn_in(op, 0x30, 0x37) || op == 0x77 ||
		         insn_in(op, 0x80, 0x8f) || insn_in(op, 0xa0, 0xa2) || insn_in(op, 0xa8, 0xaa) ||
		         insn_in(op, 0xc8, 0xcf));
	if (map != INSN_ONE_BYTE)
		return true;
	if (op < 0x40)
		return (op & 7) < 4;
	return op == 0x63 || op == 0x69 || op == 0x6b || insn_in(op, 0x80, 0x8f) || op == 0xc0 ||
	       op == 0xc1 || op == 0xc6 || op == 0xc7 || insn_in(op, 0xd0, 0xd3) ||
	       insn_in(op, 0xd8, 0xdf) || op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff;
}

/* Bytes of SIB and displacement behind a ModRM byte. */
static inline unsigned insn_address_bytes(const uint8_t *modrm)
{
	uint8_t mod = *modrm >> 6, rm = *modrm & 7;
	unsigned sib = mod != 3 && rm == 4;

	if (mod == 0)
		return sib + (rm == 5 || (sib && (modrm[1] & 7) == 5) ? 4 : 0);
	return sib + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

static inline unsigned insn_imm_bytes_one(const struct insn *in)
{
	uint8_t op = in->opcode, group = in->modrm >> 3 & 7;
	unsigned full = in->operand16 ? 2 : 4;

	if (op < 0x40)
		return (op & 7) == 4 ? 1 : (op & 7) == 5 ? full : 0;
	if (insn_in(op, 0x70, 0x7f) || insn_in(op, 0xb0, 0xb7) || insn_in(op, 0xe0, 0xe7))
		return 1;
	if (insn_in(op, 0xb8, 0xbf))
		return in->rex & 8 ? 8 : full;
	if (insn_in(op, 0xa0, 0xa3))
		return 8;
	switch (op) {
	case 0x6a: case 0x6b: case 0x80: case 0x83: case 0xa8: case 0xc0: case 0xc1: case 0xc6:
	case 0xcd: case 0xeb:
		return 1;
	case 0x68: case 0x69: case 0x81: case 0xa9: case 0xc7:
		return full;
	case 0xe8: case 0xe9:
		return 4;
	case 0xc2: case 0xca:
		return 2;
	case 0xc8:
		return 3;
	case 0xf6:
		return group < 2 ? 1 : 0;
	case 0xf7:
		return group < 2 ? full : 0;
	}
	return 0;
}

static inline unsigned insn_imm_bytes(const struct insn *in)
{
	uint8_t op = in->opcode;

	if (in->map == INSN_ONE_BYTE)
		return insn_imm_bytes_one(in);
	if (in->map == INSN_0F && insn_in(op, 0x80, 0x8f) && !in->vector)
		return 4;
	return in->map == INSN_0F3A ||
	       (in->map == INSN_0F && (insn_in(op, 0x70, 0x73) || op == 0xa4 || op == 0xac || op == 0xba ||
	                               op == 0xc2 || insn_in(op, 0xc4, 0xc6)));
}

/* Behind the prefix that stands for 0f, 0f 38 or 0f 3a; NULL: another map. */
static inline const uint8_t *insn_vector_prefix(struct insn *in, const uint8_t *at)
{
	unsigned map = at[0] == 0xc5 ? 1 : at[0] == 0xc4 ? at[1] & 31 : at[1] & 7;

	in->vector = true;
	in->map = (enum insn_map)map;
	if (map < 1 || map > 3)
		return NULL;
	return at + (at[0] == 0xc5 ? 2 : at[0] == 0xc4 ? 3 : 4);
}

static inline const uint8_t *insn_escape(struct insn *in, const uint8_t *at)
{
	if (at[0] == 0xc4 || at[0] == 0xc5 || at[0] == 0x62)
		return in->rex ? NULL : insn_vector_prefix(in, at);
	if (at[0] != 0x0f)
		return at;
	in->map = at[1] == 0x38 ? INSN_0F38 : at[1] == 0x3a ? INSN_0F3A : INSN_0F;
	return at + (in->map == INSN_0F ? 1 : 2);
}

/* Of code that can be read for INSN_BYTES_MAX bytes. False: it is not known. */
static inline bool insn_decode_padded(struct insn *in, const uint8_t *at)
{
	const uint8_t *start = at;

	*in = (struct insn){ .start = at };
	for (; at - start < 10 && insn_is_prefix(*at); at++)
		in->operand16 |= *at == 0x66;
	if ((*at & 0xf0) == 0x40)
		in->rex = *at++;
	at = insn_escape(in, at);
	if (!at || insn_is_unknown(in->map, *at))
		return false;
	in->opcode = *at++;
	in->has_modrm = insn_has_modrm(in->map, in->opcode);
	if (in->has_modrm) {
		in->modrm = *at;
		at += 1 + insn_address_bytes(at);
	}
	if (in->map == INSN_ONE_BYTE && in->opcode == 0x8f && in->modrm >> 3 & 7)
		return false;	/* XOP */
	in->imm = at;
	in->end = at + insn_imm_bytes(in);
	return in->end - start <= INSN_BYTES_MAX;
}

/* The same, of code that ends at limit. */
static inline bool insn_decode(struct insn *in, const uint8_t *at, const uint8_t *limit)
{
	uint8_t copy[2 * INSN_BYTES_MAX] = { 0 };
	size_t left = (size_t)(limit - at);

	if (left >= sizeof copy)
		return insn_decode_padded(in, at);
	memcpy(copy, at, left);
	if (!insn_decode_padded(in, copy) || (size_t)(in->end - copy) > left)
		return false;
	in->start = at;
	in->imm = at + (in->imm - copy);
	in->end = at + (in->end - copy);
	return true;
}

/* --------------------------------------------------------------- registers */

enum { INSN_RAX = 0, INSN_RDI = 7 };

/* The registers in reg and in rm of the ModRM byte; -1: that is memory. */
static inline int insn_reg(const struct insn *in)
{
	return (in->modrm >> 3 & 7) | (in->rex & 4) << 1;
}

static inline int insn_rm(const struct insn *in)
{
	return in->modrm >> 6 == 3 ? (in->modrm & 7) | (in->rex & 1) << 3 : -1;
}

/* Operations on bytes: without REX the numbers 4 to 7 are second bytes of 0 to 3. */
static inline int insn_byte(const struct insn *in, int reg)
{
	return reg >= 4 && !in->rex ? reg - 4 : reg;
}

enum { INSN_WRITES_NOTHING = -1, INSN_WRITES_ANY = -2 };

static inline int insn_writes_group(const struct insn *in)
{
	int group = in->modrm >> 3 & 7;

	switch (in->opcode) {
	case 0x80: case 0x81: case 0x83:
		return group == 7 ? INSN_WRITES_NOTHING : insn_rm(in);
	case 0xf6: case 0xf7:		/* multiplications and divisions write several */
		return group < 2 ? INSN_WRITES_NOTHING : group < 4 ? insn_rm(in) : INSN_WRITES_ANY;
	default:			/* fe, ff: calls and jumps are among them */
		return group < 2 ? insn_rm(in) : INSN_WRITES_ANY;
	}
}

static inline int insn_writes_one(const struct insn *in)
{
	uint8_t op = in->opcode;

	if (op < 0x40 && (op & 7) < 4)
		return op >= 0x38 ? INSN_WRITES_NOTHING : op & 2 ? insn_reg(in) : insn_rm(in);
	if (insn_in(op, 0xb0, 0xbf))
		return (op & 7) | (in->rex & 1) << 3;
	if (insn_in(op, 0x50, 0x57) || op == 0x68 || op == 0x6a || insn_in(op, 0x70, 0x7f) ||
	    op == 0x84 || op == 0x85)
		return INSN_WRITES_NOTHING;	/* push, conditional jumps, test */
	if (op == 0x90 && !in->rex)
		return INSN_WRITES_NOTHING;
	switch (op) {
	case 0x63: case 0x69: case 0x6b: case 0x8a: case 0x8b: case 0x8d:
		return insn_reg(in);
	case 0x88: case 0x89: case 0xc0: case 0xc1: case 0xc6: case 0xc7:
	case 0xd0: case 0xd1: case 0xd2: case 0xd3:
		return insn_rm(in);
	case 0x80: case 0x81: case 0x83: case 0xf6: case 0xf7: case 0xfe: case 0xff:
		return insn_writes_group(in);
	}
	return INSN_WRITES_ANY;
}

static inline int insn_writes_0f(const struct insn *in)
{
	uint8_t op = in->opcode;

	if (insn_in(op, 0x80, 0x8f) || insn_in(op, 0x18, 0x1f) || insn_in(op, 0x10, 0x17) ||
	    op == 0x28 || op == 0x29 || op == 0x57 || op == 0x6f || op == 0x7f || op == 0xef)
		return INSN_WRITES_NOTHING;	/* conditional jumps, nop, vectors */
	if (insn_in(op, 0x40, 0x4f) || op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf)
		return insn_reg(in);
	if (insn_in(op, 0x90, 0x9f))
		return insn_rm(in);
	return INSN_WRITES_ANY;
}

static inline bool insn_is_on_bytes(const struct insn *in)
{
	uint8_t op = in->opcode;

	if (in->map == INSN_0F)
		return insn_in(op, 0x90, 0x9f);
	return op < 0x40 ? !(op & 1) :
	       insn_in(op, 0xb0, 0xb7) || op == 0x80 || op == 0x88 || op == 0x8a || op == 0xc0 ||
	       op == 0xc6 || op == 0xd0 || op == 0xd2 || op == 0xf6 || op == 0xfe;
}

/* Execution goes on behind it, or where it jumps to, with the register as it was. */
static inline bool insn_keeps(const struct insn *in, int reg)
{
	int writes = in->vector || in->map > INSN_0F ? INSN_WRITES_ANY :
	             in->map == INSN_0F ? insn_writes_0f(in) : insn_writes_one(in);

	if (writes >= 0 && insn_is_on_bytes(in))
		writes = insn_byte(in, writes);
	return writes != INSN_WRITES_ANY && writes != reg;
}

/* It puts a constant of 0 or more into the register; -1: not so. reg: the first eight. */
static inline long insn_constant(const struct insn *in, int reg)
{
	int32_t value;

	if (in->map != INSN_ONE_BYTE || in->operand16 || in->rex & 5)
		return -1;
	if ((in->opcode == 0x31 || in->opcode == 0x33) && in->modrm == (0xc0 | reg << 3 | reg))
		return 0;
	if (!(in->opcode == 0xb8 + reg && !(in->rex & 8)) &&
	    !(in->opcode == 0xc7 && in->modrm == (0xc0 | reg)))
		return -1;
	memcpy(&value, in->imm, sizeof value);
	return value >= 0 ? value : -1;
}

/* ------------------------------------------------------------------- jumps */

/* Where a jump or call with a distance goes; NULL: it is none. */
static inline const uint8_t *insn_target(const struct insn *in)
{
	int8_t near;
	int32_t far;

	if (in->map == INSN_ONE_BYTE &&
	    (insn_in(in->opcode, 0x70, 0x7f) || insn_in(in->opcode, 0xe0, 0xe3) || in->opcode == 0xeb)) {
		memcpy(&near, in->imm, sizeof near);
		return in->end + near;
	}
	if ((in->map == INSN_ONE_BYTE && (in->opcode == 0xe8 || in->opcode == 0xe9)) ||
	    (in->map == INSN_0F && !in->vector && insn_in(in->opcode, 0x80, 0x8f))) {
		memcpy(&far, in->imm, sizeof far);
		return in->end + far;
	}
	return NULL;
}

/* A jump or call to an address in a register or in memory. */
static inline bool insn_is_indirect(const struct insn *in, bool call)
{
	uint8_t group = in->modrm >> 3 & 7;

	return in->map == INSN_ONE_BYTE && in->opcode == 0xff && group == (call ? 2 : 4);
}

/* What an indirect one at a distance from itself reads; NULL: another. */
static inline const uint8_t *insn_slot(const struct insn *in)
{
	int32_t distance;

	if (in->modrm >> 6 != 0 || (in->modrm & 7) != 5)
		return NULL;
	memcpy(&distance, in->end - sizeof distance, sizeof distance);
	return in->end + distance;
}

#endif
