/*
 * debug_reply.c - the debug server's answers
 *
 * Most are made in memory and then sent (reply_send): no lock is held while a slow client
 * reads. One that may become large is sent in pieces while it is made (reply_begin,
 * reply_write): in chunks, or to a client of HTTP/1.0 up to the end of the connection. If
 * it is broken off, the last chunk is missing, so the client sees that it is not whole.
 */
#define _GNU_SOURCE
#include <goro.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "platform/own_fd.h"
#include "base/throw.h"
#include "http/debug_http.h"

#define SEND_NS   (30 * GORO_SECOND)
#define SEND_BYTES (256 << 10)		/* what the client must read within SEND_NS */

void reply_refuse(struct reply *rp, int status, const char *why)
{
	rp->status = status;
	fprintf(rp->out, "%s\n", why);
}

const char *reply_status_text(int status)
{
	switch (status) {
	case 200: return "OK";
	case 301: return "Moved Permanently";
	case 400: return "Bad Request";
	case 403: return "Forbidden";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 408: return "Request Timeout";
	case 413: return "Content Too Large";
	case 431: return "Request Header Fields Too Large";
	case 500: return "Internal Server Error";
	case 501: return "Not Implemented";
	case 503: return "Service Unavailable";
	case 505: return "HTTP Version Not Supported";
	default:  return "Status";
	}
}

static void send_all(struct reply *rp, const void *from, size_t n)
{
	const char *p = from;

	while (n > 0 && !rp->failed) {
		size_t k = n < SEND_BYTES ? n : SEND_BYTES;

		goro_set_deadline(rp->fd, GORO_FOREVER, goro_now() + SEND_NS);
		rp->failed = !own_fd_is(rp->fd, OWN_FD_DEBUG) || goro_write_full(rp->fd, p, k) < 0;
		p += k;
		n -= k;
	}
}

/* length: the header line that tells the content's length. */
static void send_head(struct reply *rp, const char *length)
{
	char head[512];
	size_t max = sizeof head;
	int k = snprintf(head, max,
	                 "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n%s"
	                 "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n%s%s%s",
	                 rp->status, reply_status_text(rp->status), rp->type, length,
	                 rp->keep_alive ? "" : "Connection: close\r\n",
	                 rp->profile_error ? "X-Go-Pprof: 1\r\n" : "",
	                 rp->status == 405 ? "Allow: GET, HEAD\r\n" : "");

	if (rp->filename)
		k += snprintf(head + k, max - (size_t)k,
		              "Content-Disposition: attachment; filename=\"%s\"\r\n", rp->filename);
	if (rp->location)
		k += snprintf(head + k, max - (size_t)k, "Location: %s\r\n", rp->location);
	k += snprintf(head + k, max - (size_t)k, "\r\n");
	send_all(rp, head, (size_t)k);
}

void reply_send(struct reply *rp, const char *content, size_t n)
{
	char length[64];

	check(!rp->begun);
	snprintf(length, sizeof length, "Content-Length: %zu\r\n", n);
	send_head(rp, length);
	if (!rp->head_only)
		send_all(rp, content, n);
}

bool reply_begin(struct reply *rp)
{
	check(!rp->begun);
	rp->begun = true;
	rp->keep_alive &= rp->chunks;
	send_head(rp, rp->chunks ? "Transfer-Encoding: chunked\r\n" : "");
	return !rp->head_only && !rp->failed;
}

bool reply_write(struct reply *rp, const void *from, size_t n)
{
	char size[32];

	check(rp->begun && !rp->head_only);
	if (n == 0)
		return !rp->failed;
	if (rp->chunks)
		send_all(rp, size, (size_t)snprintf(size, sizeof size, "%zx\r\n", n));
	send_all(rp, from, n);
	if (rp->chunks)
		send_all(rp, "\r\n", 2);
	return !rp->failed;
}

void reply_end(struct reply *rp)
{
	check(rp->begun && !rp->head_only);
	if (rp->chunks)
		send_all(rp, "0\r\n\r\n", 5);
}

bool reply_is_wanted(const struct reply *rp)
{
	return goro_poll(rp->fd, POLLRDHUP, GORO_NOW) == 0;
}

bool reply_sleep(struct reply *rp, int64_t ns)
{
	goro_set_deadline(rp->fd, GORO_FOREVER, GORO_FOREVER);	/* that of receive */
	return goro_poll(rp->fd, POLLRDHUP, goro_now() + ns) == 0;
}
