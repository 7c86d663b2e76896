/*
 * shrink.h - a page of memory in few bytes, and back. Defined in shrink.c.
 */
#ifndef GORO_SHRINK_H
#define GORO_SHRINK_H

#include <stddef.h>

/* Bytes that shrink may write beyond those that it says. */
#define SHRINK_SLACK 8

/* What a page holds, at out: how many bytes; 0: more than max. The page is aligned, of
 * a size that is a multiple of 512; out has room for max + SHRINK_SLACK. */
size_t shrink(const void *page, size_t page_bytes, unsigned char *out, size_t max);

/* The page that it was. SHRINK_SLACK bytes beyond the shrunk ones may be read. */
void unshrink(const unsigned char *from, void *page, size_t page_bytes);

#endif
