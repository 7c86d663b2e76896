/*
 * curl_park.h - libcurl for goroutines: they park where curl_easy_perform blocks.
 *
 * To be copied, with curl_park.c. A curl_park is a multi handle of curl's, and a
 * goroutine that looks after it; any number of goroutines may perform at once, and share
 * its connections. Call curl_global_init first, in main.
 *
 * The callbacks of a transfer (CURLOPT_WRITEFUNCTION, ..) run in that goroutine, and hold
 * up the other transfers: they must not wait. CURLOPT_PRIVATE is the helper's; it sets
 * CURLOPT_NOSIGNAL, and the program ignores SIGPIPE. For each name that curl looks up it
 * makes a thread meanwhile, unless it was built with c-ares: CURLOPT_RESOLVE tells it an
 * address.
 */
#ifndef CURL_PARK_H
#define CURL_PARK_H

#include <curl/curl.h>
#include <stdint.h>

typedef struct curl_park curl_park;

curl_park *curl_park_make(void);	/* NULL: no memory, no descriptors */

/* Nobody performs any more. */
void curl_park_free(curl_park *p);

/* As curl_easy_perform. CURLE_OPERATION_TIMEDOUT: one of curl's own limits, or the
 * deadline, a goro_now() time, has passed. */
CURLcode curl_park_perform(curl_park *p, CURL *easy, int64_t deadline);

#endif
