/*
 * run.h - where the main goroutine begins. Defined in run.c.
 */
#ifndef GORO_RUN_H
#define GORO_RUN_H

struct run;

void run_main(struct run *r);

#endif
