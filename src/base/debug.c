/*
 * debug.c - reads GORO_DEBUG. It ignores unknown names and bad values, as Go does in
 * GODEBUG.
 */
#include "base/debug.h"

#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "platform/os.h"
#include "platform/tool.h"

struct debug debug;

static void set(const char *name, size_t len, int value)
{
#define X(n) \
	if (len == sizeof #n - 1 && memcmp(name, #n, len) == 0) \
		debug.n = value;
	DEBUG_SWITCH_LIST(X)
#undef X
}

/* Valgrind takes what the kernel writes there for undefined, or does not know the
 * call. */
static void suit_valgrind(void)
{
	debug.nouring = debug.nouserfault = debug.nopwait2 = 1;
}

void debug_init(void)
{
	const char *s = environment_get("GORO_DEBUG");

	if (tool_on_valgrind())
		suit_valgrind();
	while (s && *s) {
		size_t field = strcspn(s, ",");
		const char *eq = memchr(s, '=', field);

		if (eq)
			set(s, (size_t)(eq - s), (int)strtol(eq + 1, NULL, 10));
		s += field;
		s += *s == ',';
	}
	os_without = (struct os_without){ debug.nomembarrier, debug.noguard };
}
