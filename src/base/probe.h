/*
 * probe.h - places where perf, bpftrace and gdb can look in: USDT probes.
 *
 *	PROBE1(park, gp->id)
 *
 * is one nop, and a note in the file (section .note.stapsdt, which no process loads) that
 * has its address, the names goro and park, and where the arguments are. A tool that is
 * told so puts a breakpoint there and reads them; until then nothing happens:
 *
 *	bpftrace -e 'usdt:./prog:goro:park { @[arg1] = count(); }' -c ./prog
 *
 * The layout of the note is SystemTap's, which <sys/sdt.h> writes, too. An argument is
 * written as the assembler has it, with its size: 8@40(%rdi). Each is a member in memory
 * or a constant, so that nothing is computed for it.
 *
 * docs/tracing.md lists the probes; each stands where its name says.
 */
#ifndef GORO_PROBE_H
#define GORO_PROBE_H

/* The second pushsection makes one byte in each file, by which tools tell how far it was
 * moved after it was linked (prelink). */
#define PROBE_NOTE(name, arguments)                                              \
	"990:\tnop\n"                                                            \
	".pushsection .note.stapsdt, \"?\", \"note\"\n"                          \
	".balign 4\n"                                                            \
	".4byte 992f-991f, 994f-993f, 3\n"                                       \
	"991:\t.asciz \"stapsdt\"\n"                                             \
	"992:\t.balign 4\n"                                                      \
	"993:\t.8byte 990b\n"                                                    \
	".8byte _.stapsdt.base\n"                                                \
	".8byte 0\n"                                                             \
	".asciz \"goro\"\n"                                                      \
	".asciz \"" #name "\"\n"                                                 \
	".asciz \"" arguments "\"\n"                                             \
	"994:\t.balign 4\n"                                                      \
	".popsection\n"                                                          \
	".ifndef _.stapsdt.base\n"                                               \
	".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n" \
	".weak _.stapsdt.base\n"                                                 \
	".hidden _.stapsdt.base\n"                                               \
	"_.stapsdt.base:\t.space 1\n"                                            \
	".size _.stapsdt.base, 1\n"                                              \
	".popsection\n"                                                          \
	".endif\n"

/* a, b: members of 8 bytes; small: a member of 1 byte. */
#define PROBE1(name, a)       __asm__ volatile(PROBE_NOTE(name, "8@%0") : : "m"(a))
#define PROBE2(name, a, b)    __asm__ volatile(PROBE_NOTE(name, "8@%0 8@%1") : : "m"(a), "m"(b))
#define PROBE2_SMALL(name, a, small) \
	__asm__ volatile(PROBE_NOTE(name, "8@%0 1@%1") : : "m"(a), "m"(small))
/* id: an int. */
#define PROBE_INT(name, id)   __asm__ volatile(PROBE_NOTE(name, "-4@%0") : : "m"(id))
#define PROBE_INTS(name, a, b) \
	__asm__ volatile(PROBE_NOTE(name, "-4@%0 -4@%1") : : "m"(a), "m"(b))

#endif
