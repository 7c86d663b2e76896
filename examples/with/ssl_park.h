/*
 * ssl_park.h - OpenSSL for goroutines, for clients and servers: they park where SSL_read
 * and the like block.
 *
 * To be copied, with ssl_park.c. The socket is non-blocking: those of goro_dial and
 * goro_accept are. An SSL is for one goroutine at a time, also if one reads and another
 * writes; an SSL_CTX is for all. The program ignores SIGPIPE: OpenSSL writes to sockets
 * whose other side is gone.
 *
 * Results are those of the functions that they stand for, and SSL_get_error(ssl, result)
 * says what is wrong. Past the deadline, a goro_now() time, that is SSL_ERROR_WANT_READ
 * or SSL_ERROR_WANT_WRITE, as with a blocking socket that has a timeout: the same call
 * may be made once more, a write with the same bytes.
 *
 * OpenSSL's queue of errors is the thread's. Ask SSL_get_error and ERR_get_error before
 * the next call of goro's that may park: after it the goroutine may be on another thread.
 */
#ifndef SSL_PARK_H
#define SSL_PARK_H

#include <openssl/ssl.h>
#include <stdint.h>

int ssl_park_connect(SSL *ssl, int64_t deadline);
int ssl_park_accept(SSL *ssl, int64_t deadline);
int ssl_park_read(SSL *ssl, void *buf, int n, int64_t deadline);
int ssl_park_write(SSL *ssl, const void *buf, int n, int64_t deadline);   /* all of it */

/* Says goodbye, and waits for the other side's: 1 if both was done. */
int ssl_park_shutdown(SSL *ssl, int64_t deadline);

#endif
