/* expect.h - what the tests of the helpers say when something is not so. */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define expect(condition)                                                            \
	do {                                                                         \
		if (!(condition)) {                                                  \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__,   \
			        #condition);                                         \
			exit(1);                                                     \
		}                                                                    \
	} while (0)

/* Whether the text has the part in it; says what it is if not. */
static inline int says(const char *text, const char *part)
{
	if (text && strstr(text, part))
		return 1;
	fprintf(stderr, "it says: %s\n", text ? text : "(nothing)");
	return 0;
}

#endif
