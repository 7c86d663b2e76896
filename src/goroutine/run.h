/*
 * run.h - where the main goroutine begins. Defined in run.c.
 */
#ifndef GORO_RUN_H
#define GORO_RUN_H

struct g;
struct run;

void run_main(struct run *r);
/* The program's own main, of a goroutine that begins at run_main. */
void (*run_main_fn(const struct g *gp))(void);

#endif
