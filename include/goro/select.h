/*
 * goro/select.h - select.
 *
 * Part of goro.h, which says what holds for all of it. Include that one.
 */
#ifndef GORO_H_SELECT
#define GORO_H_SELECT

#include "base.h"
#include "chan.h"
#include "time.h"

#ifdef __cplusplus
extern "C" {
#endif

struct goro_case {
	goro_chan *chan;       /* NULL: never ready                               */
	void *recv;            /* receive into here; NULL: drop what is received  */
	bool *ok;              /* false if it was a close; may be NULL            */
	const void *send;      /* or send from here,                              */
	bool is_send;          /*   if this is set                                */
};

/* Waits until one case can go, does it, and returns its index; among several
 * ready ones each is as likely. With a deadline (a goro_now() time) in the past,
 * GORO_NOW included, it is Go's select with a default: -1 if none can go. With
 * one in the future it waits until then: -1 if none could go. */
GORO_API int goro_select_n(const struct goro_case *cases, size_t n, int64_t deadline);

/*	switch (goro_select(GORO_RECV(a, &x), GORO_SEND(b, &y))) {
 *	case 0: ...    x was received
 *	case 1: ...    y was sent
 *	}
 * goro_select_until(deadline, ...) takes a deadline, too. */
#ifndef __cplusplus
#define GORO_SEND(c, elemp) \
	((struct goro_case){ .chan = GORO_CASE(c, elemp), .send = (elemp), .is_send = true })
#define GORO_RECV(c, elemp) \
	((struct goro_case){ .chan = GORO_CASE(c, elemp), .recv = (elemp) })
#define GORO_RECV_OKP(c, elemp, okp) \
	((struct goro_case){ .chan = GORO_CASE(c, elemp), .recv = (elemp), .ok = (okp) })
#define goro_select_until(deadline, ...)                                     \
	goro_select_n((const struct goro_case[]){ __VA_ARGS__ },             \
	              sizeof((const struct goro_case[]){ __VA_ARGS__ }) /    \
	                      sizeof(struct goro_case), (deadline))
#else
#define GORO_SEND(c, elemp) \
	goro_detail::send_case(GORO_CASE(c, elemp), (elemp))
#define GORO_RECV(c, elemp) \
	goro_detail::recv_case(GORO_CASE(c, elemp), (elemp), nullptr)
#define GORO_RECV_OKP(c, elemp, okp) \
	goro_detail::recv_case(GORO_CASE(c, elemp), (elemp), (okp))
#define goro_select_until(deadline, ...) \
	goro_detail::select_until((deadline), { __VA_ARGS__ })
#endif
#define goro_select(...) goro_select_until(GORO_FOREVER, __VA_ARGS__)

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
namespace goro_detail {

inline goro_case send_case(goro_chan *c, const void *elem)
{
	return { c, nullptr, nullptr, elem, true };
}

inline goro_case recv_case(goro_chan *c, void *elem, bool *ok)
{
	return { c, elem, ok, nullptr, false };
}

inline int select_until(int64_t deadline, std::initializer_list<goro_case> cases)
{
	return goro_select_n(cases.begin(), cases.size(), deadline);
}

}
#endif

#endif
