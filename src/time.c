/*
 * time.c - the clock.
 */
#include <goro.h>

#include "os.h"

int64_t goro_now(void)
{
	return os_now();
}
