/*
 * inflate.h - bytes out of gzip's wrapping (RFC 1952, RFC 1951). Defined in inflate.c.
 */
#ifndef GORO_CMD_INFLATE_H
#define GORO_CMD_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* They begin as gzip's do. */
bool is_gzip(const uint8_t *in, size_t n);

/* Unpacks all of in, of at most limit bytes, to *out, which is to be freed. False: *why
 * says why not, and nothing is to be freed. */
bool gunzip(const uint8_t *in, size_t n, size_t limit, uint8_t **out, size_t *out_n,
            const char **why);

#endif
