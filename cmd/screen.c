/*
 * screen.c - text for people: colours, lines that are broken.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd.h"
#include "screen.h"

#define COLUMNS 80

static bool has_colours(void)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

const char *colour(enum colour c)
{
	static const char *const on[] = { "\033[0m", "\033[1m", "\033[2m", "\033[31m", "\033[32m",
		"\033[33m", "\033[34m", "\033[35m", "\033[36m" };
	static int has = -1;

	if (has < 0)
		has = has_colours();
	return has ? on[c] : "";
}

void print_wrapped(const char *words, int indent)
{
	int column = indent;

	while (*words) {
		int n = (int)strcspn(words, " ");

		if (column > indent && column + 1 + n > COLUMNS) {
			printf("\n%*s", indent, "");
			column = indent;
		}
		if (column > indent)
			column += putchar(' ') == ' ';
		column += printf("%.*s", n, words);
		words += n;
		words += strspn(words, " ");
	}
	putchar('\n');
}

char *with_commas(uint64_t n)
{
	char *text = n >= 1000 ? with_commas(n / 1000) : NULL;

	return text ? format("%s,%03u", text, (unsigned)(n % 1000)) : format("%u", (unsigned)n);
}

char *in_unit(double n, const char *unit)
{
	return format("%.*f %s", n < 9.995 ? 2 : n < 99.95 ? 1 : 0, n, unit);
}

char *bytes_text(double n)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	int u = 0;

	for (; n >= 1023.5 && u < 4; u++)
		n /= 1024;
	return format("%.*f %s", u > 0 && n < 99.95 ? 1 : 0, n, unit[u]);
}

char *time_text(double s)
{
	if (s < 0)
		return format("-");
	if (isinf(s))
		return format("long");
	if (s == 0)
		return format("0");
	return s < 1e-6 ? in_unit(s * 1e9, "ns") : s < 1e-3 ? in_unit(s * 1e6, "us")
	       : s < 1 ? in_unit(s * 1e3, "ms") : in_unit(s, "s");
}

int screen_columns(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= COLUMNS ? size.ws_col : COLUMNS;
}

int bytes_in_columns(const char *text, int columns)
{
	int n = 0;

	for (; text[n] && columns > 0; columns--)
		for (n++; (text[n] & 0xc0) == 0x80; n++)
			;
	return n;
}
