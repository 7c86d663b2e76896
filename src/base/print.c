/*
 * print.c - see print.h.
 */
#include "base/print.h"

#include <stdarg.h>
#include <string.h>

#include "platform/os.h"

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

void print_format(struct printer *pr, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	for (const char *at = format; *at; at++) {
		size_t n = strcspn(at, "%");

		print_bytes(pr, at, n);
		at += n;
		if (!*at)
			break;
		at += 1 + strspn(at + 1, "#");
		if (*at == 's')
			print_str(pr, va_arg(ap, const char *));
		else if (*at == 'd')
			print_int(pr, va_arg(ap, int));
		else if (at[1] == 'd')
			print_int(pr, va_arg(ap, long));
		else
			print_hex(pr, va_arg(ap, unsigned long));
		at += *at == 'l';
	}
	va_end(ap);
}
