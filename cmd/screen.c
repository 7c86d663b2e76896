/*
 * screen.c - text for people: colours, lines that are broken.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
	static const char *const on[] = { "\033[0m", "\033[1m", "\033[2m", "\033[31m", "\033[32m", "\033[33m" };
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
