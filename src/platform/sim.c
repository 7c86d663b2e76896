/*
 * sim.c - the seam for simulation, which the room sim fills in: see sim.h.
 */
#include "platform/sim.h"

#include <limits.h>

const struct sim_os *sim;

#if GORO_SIM_POINTS

static void no_point(void)
{
	sim_points_left = INT_MAX;
}

int sim_points_left = INT_MAX;
void (*sim_point_due)(void) = no_point;

#endif
