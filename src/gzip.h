/*
 * gzip.h - bytes in gzip's wrapping, not made smaller. Defined in gzip.c.
 */
#ifndef GORO_GZIP_H
#define GORO_GZIP_H

#include "bytes.h"

void gzip_store(struct bytes *out, const struct bytes *in);

#endif
