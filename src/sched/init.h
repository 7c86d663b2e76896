/*
 * init.h - what init.c calls, of files without a header of their own.
 */
#ifndef GORO_INIT_H
#define GORO_INIT_H

void foreign_init(void);

#endif
