/* ssl_park.c - see ssl_park.h. */
#include "ssl_park.h"

#include <goro.h>
#include <openssl/err.h>
#include <poll.h>

/*
 * After a call that returned r: whether to make it once more. SSL_get_error looks at the
 * thread's queue of errors, so each call begins with an empty one, and nothing parks
 * between the two. When goro_poll has parked the thread may be another, with errors of
 * others in its queue.
 */
static bool again(SSL *ssl, int r, int64_t deadline)
{
	int ready;

	switch (r > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl, r)) {
	case SSL_ERROR_WANT_READ:
		ready = goro_poll(SSL_get_rfd(ssl), POLLIN, deadline);
		break;
	case SSL_ERROR_WANT_WRITE:
		ready = goro_poll(SSL_get_wfd(ssl), POLLOUT, deadline);
		break;
	default:
		return false;
	}
	ERR_clear_error();
	return ready != 0;	/* an error is for OpenSSL to find */
}

int ssl_park_connect(SSL *ssl, int64_t deadline)
{
	int r;

	ERR_clear_error();
	do {
		r = SSL_connect(ssl);
	} while (again(ssl, r, deadline));
	return r;
}

int ssl_park_accept(SSL *ssl, int64_t deadline)
{
	int r;

	ERR_clear_error();
	do {
		r = SSL_accept(ssl);
	} while (again(ssl, r, deadline));
	return r;
}

int ssl_park_read(SSL *ssl, void *buf, int n, int64_t deadline)
{
	int r;

	ERR_clear_error();
	do {
		r = SSL_read(ssl, buf, n);
	} while (again(ssl, r, deadline));
	return r;
}

int ssl_park_write(SSL *ssl, const void *buf, int n, int64_t deadline)
{
	int r;

	ERR_clear_error();
	do {
		r = SSL_write(ssl, buf, n);
	} while (again(ssl, r, deadline));
	return r;
}

int ssl_park_shutdown(SSL *ssl, int64_t deadline)
{
	int r;

	ERR_clear_error();
	do {
		r = SSL_shutdown(ssl);
		if (r == 0)	/* said; once more waits for the other side */
			r = SSL_shutdown(ssl);
	} while (again(ssl, r, deadline));
	return r;
}
