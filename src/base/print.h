/*
 * print.h - formatted output without stdio, for handlers and fatal ends.
 *
 * A printer collects output, and writes it when it is full and at print_flush: to a
 * descriptor by raw system calls (async-signal-safe, no libc lock), or to a FILE, in user
 * code only.
 */
#ifndef GORO_PRINT_H
#define GORO_PRINT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct printer {
	int fd;
	FILE *file;		/* if not NULL, instead of fd */
	size_t n;
	char buf[1024];
};

struct printer print_to_fd(int fd);
struct printer print_to_file(FILE *file);
void print_bytes(struct printer *pr, const char *s, size_t n);
void print_str(struct printer *pr, const char *s);
void print_int(struct printer *pr, int64_t v);
void print_hex(struct printer *pr, uint64_t v);		/* 0x... */
/* Of printf's formats only %s, %d and %ld, and %#lx. */
void print_format(struct printer *pr, const char *format, ...) __attribute__((format(printf, 2, 3)));
void print_flush(struct printer *pr);

#endif
