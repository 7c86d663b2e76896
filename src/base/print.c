/*
 * print.c - see print.h.
 */
#include "print.h"

#include <string.h>

#include "os.h"

struct printer print_to_fd(int fd)
{
	return (struct printer){ .fd = fd };
}

struct printer print_to_file(FILE *file)
{
	return (struct printer){ .fd = -1, .file = file };
}

void print_flush(struct printer *pr)
{
	if (pr->file)
		fwrite(pr->buf, 1, pr->n, pr->file);
	else
		os_write(pr->fd, pr->buf, pr->n);
	pr->n = 0;
}

void print_bytes(struct printer *pr, const char *s, size_t n)
{
	while (n > 0) {
		size_t k = sizeof pr->buf - pr->n;

		if (k > n)
			k = n;
		memcpy(pr->buf + pr->n, s, k);
		pr->n += k;
		s += k;
		n -= k;
		if (pr->n == sizeof pr->buf)
			print_flush(pr);
	}
}

void print_str(struct printer *pr, const char *s)
{
	print_bytes(pr, s, strlen(s));
}

static void print_digits(struct printer *pr, uint64_t v, unsigned base)
{
	char digits[24];
	size_t at = sizeof digits;

	do {
		digits[--at] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	print_bytes(pr, digits + at, sizeof digits - at);
}

void print_int(struct printer *pr, int64_t v)
{
	if (v < 0)
		print_bytes(pr, "-", 1);
	print_digits(pr, v < 0 ? -(uint64_t)v : (uint64_t)v, 10);
}

void print_hex(struct printer *pr, uint64_t v)
{
	print_bytes(pr, "0x", 2);
	print_digits(pr, v, 16);
}
