/* settings.c - the variables of the environment. */
#include "base/debug.h"
#include "base/environment.h"
#include "fuzz.h"
#include "platform/cpus.h"

void fuzz_settings(const uint8_t *data, size_t n)
{
	struct debug before = debug;
	char *s = fuzz_string(&data, &n), out[64];

	setenv("GORO_DEBUG", s, 1);
	debug_init();
	unsetenv("GORO_DEBUG");
	debug = before;
	if (cpus_parse_maxprocs(s, 1024) > 1024)
		abort();
	environment_expand(s, out, sizeof out);
	free(s);
}
