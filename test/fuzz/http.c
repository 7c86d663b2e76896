/* http.c - a request to the debug server. */
#include "http/debug_http.h"

#include "fuzz.h"

void fuzz_http(const uint8_t *data, size_t n)
{
	struct http_request rq;
	char out[16], *head;
	size_t end = n ? http_head_end((const char *)data, n) : 0;

	if (end == 0)
		return;
	head = malloc(end);
	memcpy(head, data, end);
	if (http_parse(head, end, &rq) == 0) {
		if (!rq.method[0] || rq.path[0] != '/')
			abort();
		if (http_query(&rq, "debug", out, sizeof out) && strlen(out) >= sizeof out)
			abort();
		debug_guard(&rq, true, false);
		debug_guard(&rq, false, true);
	}
	free(head);
}
