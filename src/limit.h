/*
 * limit.h - how many threads there may be. Defined in limit.c.
 */
#ifndef GORO_LIMIT_H
#define GORO_LIMIT_H

/* Ends the process, with a report, if there are to be more than allowed .. */
void limit_check(int threads);
/* .. or if the kernel does not give us another. */
_Noreturn void limit_reached(int threads, int error);

#endif
