/*
 * ints.h - sending and receiving an int.
 */
#ifndef GORO_TEST_INTS_H
#define GORO_TEST_INTS_H

#include <goro.h>

#include "test.h"

__attribute__((unused))
static void send_int(goro_chan *c, int v)
{
	goro_chan_send(c, &v);
}

__attribute__((unused))
static int recv_int(goro_chan *c)
{
	int v = -1;

	CHECK(goro_chan_recv(c, &v));
	return v;
}

#endif
