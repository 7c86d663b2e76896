/*
 * embed.h - files of this folder as texts in the command.
 */
#ifndef GORO_CMD_EMBED_H
#define GORO_CMD_EMBED_H

/* The text of a file in cmd/. */
#define EMBED(symbol, file)                                          \
	extern const char symbol[];                                  \
	__asm__(".pushsection .rodata\n"                             \
	        ".hidden " #symbol "\n"                              \
	        ".globl " #symbol "\n"                               \
	        #symbol ":\n"                                        \
	        ".incbin \"" GORO_SOURCE_DIR "/cmd/" file "\"\n"     \
	        ".byte 0\n"                                          \
	        ".popsection");

#endif
