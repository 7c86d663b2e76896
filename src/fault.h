/*
 * fault.h - signals that end the process. Defined in fault.c.
 */
#ifndef GORO_FAULT_H
#define GORO_FAULT_H

void fault_init(void);

#endif
