/* profile.c - profiles, as goro profile reads them. */
#include "fuzz.h"
#include "../../cmd/profile_read.h"

void fuzz_profile(const uint8_t *data, size_t n)
{
	struct profile p;

	profile_read(&p, data, n, NULL);
	profile_free(&p);
}
