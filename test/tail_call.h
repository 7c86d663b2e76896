/*
 * tail_call.h - a function that ends in a tail call, in every build: as compilers make it
 * of
 *
 *	void leaves_for_good(goro_chan *c) { goro_chan_recv(c, NULL); }
 */
#ifndef GORO_TEST_TAIL_CALL_H
#define GORO_TEST_TAIL_CALL_H

#include <goro.h>

void leaves_for_good(goro_chan *c);

__asm__(".pushsection .text\n"
        ".type leaves_for_good, %function\n"
        "leaves_for_good:\n"
        ".cfi_startproc\n"
#ifdef __x86_64__
        "endbr64\n"
        "xorl %esi, %esi\n"
        "jmp goro_chan_recv@PLT\n"
#else
        "hint #34\n"
        "mov x1, xzr\n"
        "b goro_chan_recv\n"
#endif
        ".cfi_endproc\n"
        ".size leaves_for_good, .-leaves_for_good\n"
        ".popsection");

#endif
