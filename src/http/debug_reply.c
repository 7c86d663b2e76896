/*
 * debug_reply.c - the debug server's answers, on their way to the client.
 *
 * Most are put together in memory and then sent (reply_send): nothing is held or locked while
 * a slow client reads. One that may become large is sent in pieces as it is made (reply_begin,
 * reply_write): in chunks, or to a client of HTTP/1.0 up to the end of the connection. What is
 * broken off lacks the last chunk, so that the client knows.
 */
#define _GNU_SOURCE
#include <goro.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "debug_http.h"

#define SEND_NS   (30 * GORO_SECOND)
#define SEND_BYTES (256 << 10)		/* at a time, each within SEND_NS */

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
		rp->failed = goro_write_full(rp->fd, p, k) < 0;
		p += k;
		n -= k;
	}
}

/* length: of the content, as a header line. */
static void send_head(struct reply *rp, const char *length)
{
	char head[512];
	size_t max = sizeof head;
	int k = snprintf(head, max,
	                 "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n%s"
	                 "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n%s",
	                 rp->status, reply_status_text(rp->status), rp->type, length,
	                 rp->keep_alive ? "" : "Connection: close\r\n");

	if (rp->filename)
		k += snprintf(head + k, max - (size_t)k,
		              "Content-Disposition: attachment; filename=\"%s\"\r\n", rp->filename);
	if (rp->profile_error)
		k += snprintf(head + k, max - (size_t)k, "X-Go-Pprof: 1\r\n");
	if (rp->location)
		k += snprintf(head + k, max - (size_t)k, "Location: %s\r\n", rp->location);
	if (rp->status == 405)
		k += snprintf(head + k, max - (size_t)k, "Allow: GET, HEAD\r\n");
	k += snprintf(head + k, max - (size_t)k, "\r\n");
	send_all(rp, head, (size_t)k);
}

void reply_send(struct reply *rp, const char *content, size_t n)
{
	char length[64];

	snprintf(length, sizeof length, "Content-Length: %zu\r\n", n);
	send_head(rp, length);
	if (!rp->head_only)
		send_all(rp, content, n);
}

bool reply_begin(struct reply *rp)
{
	rp->begun = true;
	rp->keep_alive &= rp->chunks;
	send_head(rp, rp->chunks ? "Transfer-Encoding: chunked\r\n" : "");
	return !rp->head_only && !rp->failed;
}

bool reply_write(struct reply *rp, const void *from, size_t n)
{
	char size[32];

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
	if (rp->chunks && !rp->head_only)
		send_all(rp, "0\r\n\r\n", 5);
}

bool reply_is_wanted(const struct reply *rp)
{
	return goro_poll(rp->fd, POLLRDHUP, GORO_NOW) == 0;
}

bool reply_sleep(struct reply *rp, int64_t ns)
{
	goro_set_deadline(rp->fd, GORO_FOREVER, GORO_FOREVER);	/* that of its request */
	return goro_poll(rp->fd, POLLRDHUP, goro_now() + ns) == 0;
}
