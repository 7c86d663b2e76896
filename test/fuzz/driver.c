/* driver.c - one function of fuzz.h for libFuzzer. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	FUZZ_TARGET(data, n);
	return 0;
}
