/* demangle.c - C++ names. */
#include "fuzz.h"
#include "unwind/symbol.h"

void fuzz_demangle(const uint8_t *data, size_t n)
{
	char *name = malloc(n + 1), out[256];

	memcpy(name, data, n);
	name = realloc(name, n ? n : 1);
	if (demangle(name, n, out, sizeof out) && strnlen(out, sizeof out) == sizeof out)
		abort();
	if (demangle(name, n, out, 4) && strnlen(out, 4) == 4)
		abort();
	free(name);
}
