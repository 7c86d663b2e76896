/*
 * run.h - where the main goroutine begins. Defined in run.c.
 */
#ifndef GORO_RUN_H
#define GORO_RUN_H

#include "base/hook.h"

struct g;
struct run;

void run_main(struct run *r);
/* The main of the program, of a goroutine that begins at run_main. */
void (*run_main_fn(const struct g *gp))(void);

/* Run by goro_run in user code, before it starts main. */
extern struct hook *at_run;

#endif
