/*
 * ares_park.h - names to addresses with c-ares, for goroutines: they park where
 * getaddrinfo blocks.
 *
 * To be copied, with ares_park.c and poll_park.[ch]. A resolver has one channel of
 * c-ares's, and a goroutine that looks after it; any number of goroutines may look names
 * up at once. Errors are those of c-ares; see ares_strerror. Call ares_library_init
 * first, in main.
 */
#ifndef ARES_PARK_H
#define ARES_PARK_H

#include <ares.h>
#include <netdb.h>
#include <stdint.h>

typedef struct ares_park ares_park;

/* Options as of ares_init_options; NULL, 0: what /etc/resolv.conf says. NULL: no memory,
 * or c-ares cannot; why not is in *status. */
ares_park *ares_park_make(struct ares_options *options, int mask, int *status);

/* Nobody is in ares_park_getaddrinfo any more. What was given up at its deadline ends,
 * too. */
void ares_park_free(ares_park *r);

/* As getaddrinfo: ARES_SUCCESS with a result for ares_freeaddrinfo, or why there is none.
 * ARES_ETIMEOUT: the servers do not answer, or the deadline, a goro_now() time, has
 * passed. */
int ares_park_getaddrinfo(ares_park *r, const char *node, const char *service,
                          const struct ares_addrinfo_hints *hints,
                          struct ares_addrinfo **result, int64_t deadline);

#endif
