/* shrink.h - a page of memory in few bytes, and back. Defined in shrink.c. */
#ifndef GORO_SHRINK_H
#define GORO_SHRINK_H

#include <stddef.h>

/* Bytes that shrink may write beyond max, and unshrink may read beyond the result. */
#define SHRINK_BEYOND 76
#define SHRINK_SLACK  8

/* Writes what the page holds to out. The bytes written; 0: they would be more than max.
 * The page is aligned, of a multiple of 4 KiB; out has room for max + SHRINK_BEYOND. */
size_t shrink(const void *page, size_t page_bytes, unsigned char *out, size_t max);

/* Restores the page. May read SHRINK_SLACK bytes beyond the shrunk ones. */
void unshrink(const unsigned char *from, void *page, size_t page_bytes);

#endif
