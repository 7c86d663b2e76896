/*
 * debug_http_test.c - the debug server, as a client sees it.
 */
/* test: procs */
#include "http/debug_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <goro.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "platform/atomic.h"
#include "platform/own_fd.h"
#include "await.h"
#include "child.h"
#include "test.h"

/* ------------------------------------------------------------------- client */

static int port;

static void serve(void)
{
	CHECK_EQ(debug_http_serve(":0", &port), 0);
	CHECK(port > 0);
}

static int connect_to(void)
{
	char address[32];
	int fd;

	snprintf(address, sizeof address, "127.0.0.1:%d", port);
	fd = goro_dial("tcp", address, goro_now() + seconds(30));
	CHECK(fd >= 0);
	return fd;
}

static char answer[4 << 20];
static size_t answer_n;

static const char *body_of(const char *text)
{
	const char *end = strstr(text, "\r\n\r\n");

	CHECK(end);
	return end + 4;
}

/* Reads until the server hangs up. */
static const char *read_all(int fd)
{
	ssize_t n;

	answer_n = 0;
	goro_set_deadline(fd, goro_now() + seconds(50), GORO_FOREVER);
	while ((n = goro_read(fd, answer + answer_n, sizeof answer - 1 - answer_n)) > 0)
		answer_n += (size_t)n;
	answer[answer_n] = '\0';
	goro_close(fd);
	return answer;
}

static const char *send_raw(const void *p, size_t n)
{
	int fd = connect_to();

	goro_write_full(fd, p, n);
	return read_all(fd);
}

static const char *ask(const char *request)
{
	return send_raw(request, strlen(request));
}

/* Joins the chunks of the answer's body in place. NULL: the last chunk is missing. */
static char *whole_body(void)
{
	char *body = (char *)(uintptr_t)body_of(answer), *from = body, *to = body, *end;

	CHECK_CONTAINS(answer, "Transfer-Encoding: chunked\r\n");
	for (;;) {
		size_t n = strtoul(from, &end, 16);

		if (end == from || memcmp(end, "\r\n", 2) != 0 || end + 2 + n + 2 > answer + answer_n)
			return NULL;
		if (n == 0)
			return body;
		memmove(to, end + 2, n);
		to += n;
		from = end + 2 + n + 2;
	}
}

#define END " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

static int status_of(const char *text)
{
	int status = 0;

	sscanf(text, "HTTP/1.1 %d", &status);
	return status;
}

static const char *get(const char *path)
{
	char request[1024];

	snprintf(request, sizeof request, "GET %s" END, path);
	return ask(request);
}

/* -------------------------------------------------------------------- pages */

GO_TEST(the_live_page_is_one_file)
{
	serve();
	CHECK_EQ(status_of(get("/debug/")), 200);
	CHECK_CONTAINS(answer, "Content-Type: text/html; charset=utf-8\r\n");
	CHECK_CONTAINS(answer, "</html>");
	CHECK(!strstr(answer, "src=\"http"));
	CHECK(!strstr(answer, "href=\"http"));
}

SEEN static void waits(goro_chan *c)
{
	goro_chan_recv(c, NULL);
	NO_TAIL_CALL();
}

GO_TEST(figures_are_of_the_program)
{
	goro_chan *c = goro_chan_make(0, 0);

	serve();
	for (int i = 0; i < 17; i++)
		go(waits, c);
	AWAIT(strstr(get("/debug/stats.json"), "\"chan receive\":17"));
	CHECK_CONTAINS(answer, "Content-Type: application/json\r\n");
	CHECK_CONTAINS(answer, "\"procs\":[{\"id\":0,");
	CHECK_CONTAINS(answer, "\"program\":\"");
	CHECK_CONTAINS(get("/debug/metrics"), "goro_goroutines_waiting{reason=\"chan receive\"} 17\n");
}

/* Every line is a comment or "name{labels} number", and a histogram only grows. */
static void check_metrics(char *text)
{
	double last = -1;
	char *rest, name[128];

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *value = strrchr(line, ' '), *end;

		CHECK(value);
		if (line[0] == '#') {
			CHECK(sscanf(line, "# HELP %100s", name) == 1 || sscanf(line, "# TYPE %100s", name) == 1);
			continue;
		}
		CHECK(strspn(line, "abcdefghijklmnopqrstuvwxyz_") > 4);
		double v = strtod(value + 1, &end);
		CHECK(*end == '\0');
		if (strstr(line, "_bucket{")) {
			CHECK(v >= last);
			last = v;
		}
	}
	CHECK(last >= 0);
}

GO_TEST(metrics_are_prometheus_text)
{
	serve();
	CHECK_EQ(status_of(get("/debug/metrics")), 200);
	CHECK_CONTAINS(answer, "Content-Type: text/plain; version=0.0.4");
	CHECK_CONTAINS(answer, "# TYPE goro_sched_latency_seconds histogram\n");
	CHECK_CONTAINS(answer, "process_resident_memory_bytes ");
	check_metrics((char *)(uintptr_t)body_of(answer));
}

GO_TEST(the_command_line)
{
	serve();
	CHECK_EQ(status_of(get("/debug/pprof/cmdline")), 200);
	CHECK_CONTAINS(body_of(answer), "debug_http_test");
}

__attribute__((noinline, used)) void named_function(void)
{
	NO_TAIL_CALL();
}

GO_TEST(symbols_by_address)
{
	char request[300], want[100];

	serve();
	CHECK_STR(body_of(get("/debug/pprof/symbol")), "num_symbols: 1\n");
	snprintf(request, sizeof request, "/debug/pprof/symbol?%p+0x1", (void *)named_function);
	snprintf(want, sizeof want, "num_symbols: 1\n%p named_function\n", (void *)named_function);
	CHECK_STR(body_of(get(request)), want);
}

GO_TEST(the_index_links_to_what_there_is)
{
	serve();
	CHECK_EQ(status_of(get("/debug/pprof/")), 200);
	CHECK_CONTAINS(answer, "<a href=\"goroutine");
	CHECK_EQ(status_of(get("/debug/pprof")), 301);
	CHECK_CONTAINS(answer, "Location: /debug/pprof/\r\n");
	CHECK_EQ(status_of(get("/")), 301);
	CHECK_CONTAINS(answer, "Location: /debug/\r\n");
}

GO_TEST(stacks_of_all_goroutines)
{
	serve();
	go(waits, goro_chan_make(0, 0));
	AWAIT(strstr(get("/debug/pprof/goroutine?debug=2"), " [chan receive]:\n"));
	CHECK_CONTAINS(answer, "Content-Type: text/plain; charset=utf-8\r\n");
	CHECK_CONTAINS(answer, "waits(...)");
}

/* Counts goroutines that have function on their stacks, and such stacks, in a page with a
 * paragraph "N @ stack" and its frames for each stack. */
static int number_with(const char *page, const char *function, int *stacks)
{
	int n = 0;

	*stacks = 0;
	for (const char *at = page, *end; (at = strstr(at, " @ 0x")); at = end) {
		const char *number = at, *frame = strstr(at, function);

		end = strstr(at, "\n\n");
		end = end ? end : at + strlen(at);
		while (number > page && number[-1] != '\n')
			number--;
		if (frame && frame < end) {
			n += atoi(number);
			++*stacks;
		}
	}
	return n;
}

/* As text, each stack once. A receiver waits in one place or, if it found the channel
 * locked, in another. */
GO_TEST(stacks_with_their_numbers)
{
	goro_chan *c = goro_chan_make(0, 0);
	int stacks;

	serve();
	for (int i = 0; i < 23; i++)
		go(waits, c);
	AWAIT(number_with(get("/debug/pprof/goroutine?debug=1"), "\twaits+0x", &stacks) == 23 &&
	      stacks <= 2);
	CHECK_CONTAINS(body_of(answer), "goroutine profile: total ");
	CHECK_CONTAINS(answer, "\twaits+0x");
	CHECK_CONTAINS(answer, "debug_http_test.c:");
	CHECK_CONTAINS(body_of(get("/debug/pprof/threadcreate?debug=1")), "threadcreate profile: total ");
	CHECK_CONTAINS(body_of(get("/debug/pprof/goroutineleak?debug=1")), "goroutineleak profile: total ");
	CHECK_EQ(status_of(get("/debug/pprof/goroutineleak?debug=2")), 200);
	CHECK_CONTAINS(body_of(get("/debug/pprof/block?debug=1")), "--- contention:\ncycles/second=");
	CHECK_CONTAINS(body_of(get("/debug/pprof/mutex?debug=1")), "--- mutex:\ncycles/second=");
}

static void burns(void)
{
	for (;;)
		__asm__ volatile("");
}

/* Repeats the request until no other client has a profile under way. */
static void asks_until_answered(const char *request, const char *disposition, goro_chan *done)
{
	char head[4096] = "";
	int fd;

	do {
		fd = connect_to();
		goro_write_full(fd, request, strlen(request));
		CHECK(goro_read(fd, head, sizeof head - 1) > 0);
		goro_close(fd);
	} while (status_of(head) == 500);
	CHECK_EQ(status_of(head), 200);
	CHECK_CONTAINS(head, disposition);
	goro_chan_send(done, NULL);
}

/* Only one at a time; the refusal is worded as Go's. */
GO_TEST(a_cpu_profile)
{
	goro_chan *done = goro_chan_make(0, 0);
	int64_t began = goro_now();

	serve();
	go(burns);
	go(asks_until_answered, "GET /debug/pprof/profile?seconds=1" END, "filename=\"profile\"\r\n", done);
	get("/debug/pprof/profile?seconds=1");
	if (status_of(answer) != 200) {
		CHECK_EQ(status_of(answer), 500);
		CHECK_CONTAINS(answer, "X-Go-Pprof: 1\r\n");
		CHECK_STR(body_of(answer), "Could not enable CPU profiling: cpu profiling already in use\n");
	}
	goro_chan_recv(done, NULL);
	CHECK(goro_now() - began >= seconds(1));
}

GO_TEST(a_trace)
{
	goro_chan *done = goro_chan_make(0, 0);

	serve();
	CHECK_EQ(status_of(get("/debug/pprof/trace?seconds=0.1")), 200);
	CHECK(memcmp(whole_body(), "go 1.", 5) == 0);
	go(asks_until_answered, "GET /debug/pprof/trace?seconds=0.3" END, "filename=\"trace\"\r\n", done);
	get("/debug/pprof/trace?seconds=0.3");
	if (status_of(answer) != 200)
		CHECK_STR(body_of(answer), "Could not enable tracing: tracing is already enabled\n");
	goro_chan_recv(done, NULL);
}

/* The client hangs up: the profile ends, and the next client gets one. */
GO_TEST(a_profile_that_nobody_waits_for)
{
	int status;

	serve();
	do {		/* either request may come first */
		int fd = connect_to();

		goro_write_full(fd, "GET /debug/pprof/profile?seconds=1000" END,
		                strlen("GET /debug/pprof/profile?seconds=1000" END));
		status = status_of(get("/debug/pprof/profile?seconds=1"));
		goro_close(fd);
	} while (status != 500);
	AWAIT(status_of(get("/debug/pprof/profile?seconds=1")) == 200);
}

static uint32_t stop;

static void starts_and_ends(void)
{
	while (!load_relaxed(&stop))
		goro_gosched();
}

/* The same of a trace. The client gets it while it is made, and sees its end. */
GO_TEST(a_trace_is_sent_while_it_is_made)
{
	const char *request = "GET /debug/pprof/trace?seconds=1000" END;
	char part[4096];
	int fd;

	serve();
	go(starts_and_ends);
	fd = connect_to();
	goro_write_full(fd, request, strlen(request));
	goro_set_deadline(fd, goro_now() + seconds(10), GORO_FOREVER);
	CHECK(goro_read(fd, part, sizeof part - 1) > 0);	/* the head */
	for (size_t n = 0; n < sizeof part;) {
		ssize_t r = goro_read(fd, part, sizeof part);

		CHECK(r > 0);
		n += (size_t)r;
	}
	goro_close(fd);
	store_relaxed(&stop, 1);
	AWAIT(status_of(get("/debug/pprof/trace?seconds=0.1")) == 200);
	CHECK(whole_body());
	/* A client of HTTP/1.0 gets no chunks. */
	AWAIT(status_of(ask("GET /debug/pprof/trace?seconds=0.1 HTTP/1.0\r\n\r\n")) == 200);
	CHECK(memcmp(body_of(answer), "go 1.", 5) == 0);
}

/* The program ends the trace, or it fails: the client sees that at once. */
GO_TEST(a_trace_that_the_program_stops_is_over)
{
	const char *request = "GET /debug/pprof/trace?seconds=1000" END;
	int fd;

	serve();
	fd = connect_to();
	goro_write_full(fd, request, strlen(request));
	CHECK(goro_read(fd, answer, 15) > 0);
	goro_trace_stop();
	read_all(fd);
	CHECK(answer_n > 100);
	CHECK(memcmp(answer + answer_n - 5, "0\r\n\r\n", 5) == 0);
}

GO_TEST(hours_of_profiling_are_refused)
{
	serve();
	CHECK_EQ(status_of(get("/debug/pprof/profile?seconds=1000000")), 400);
	CHECK_EQ(status_of(get("/debug/pprof/trace?seconds=3601")), 400);
	CHECK_EQ(status_of(ask("HEAD /debug/pprof/trace?seconds=3600" END)), 200);
	CHECK_STR(body_of(answer), "");
	CHECK_EQ(status_of(ask("HEAD /debug/pprof/profile?seconds=3600" END)), 200);
}

/* Files for pprof; debug_pprof_test.sh tests that pprof reads them. */
GO_TEST(profiles_are_compressed_files)
{
	static const char *const name[] = { "goroutine", "block", "mutex", "threadcreate",
		"goroutineleak" };

	serve();
	for (int i = 0; i < 5; i++) {
		char path[64], want[64];

		snprintf(path, sizeof path, "/debug/pprof/%s", name[i]);
		CHECK_EQ(status_of(get(path)), 200);
		snprintf(want, sizeof want, "attachment; filename=\"%s\"\r\n", name[i]);
		CHECK_CONTAINS(answer, want);
		CHECK_CONTAINS(answer, "Content-Type: application/octet-stream\r\n");
		CHECK(memcmp(body_of(answer), "\x1f\x8b", 2) == 0);
	}
}

GO_TEST(unknown_pages_and_profiles)
{
	serve();
	CHECK_EQ(status_of(get("/nothing")), 404);
	CHECK_EQ(status_of(get("/debug/nothing")), 404);
	CHECK_EQ(status_of(get("/debug/pprof/nothing")), 404);
	CHECK_CONTAINS(answer, "X-Go-Pprof: 1\r\n");
	CHECK_CONTAINS(body_of(answer), "Unknown profile\n");
}

/* ----------------------------------------------------------------- the protocol */

GO_TEST(head_is_get_without_the_body)
{
	serve();
	CHECK_EQ(status_of(ask("HEAD /debug/" END)), 200);
	CHECK(strstr(answer, "Content-Length: "));
	CHECK(!strstr(answer, "Content-Length: 0\r"));
	CHECK_STR(body_of(answer), "");
}

GO_TEST(other_methods_are_refused)
{
	serve();
	CHECK_EQ(status_of(ask("DELETE /debug/" END)), 405);
	CHECK_CONTAINS(answer, "Allow: GET, HEAD\r\n");
	CHECK_EQ(status_of(ask("POST /debug/metrics" END)), 405);
}

GO_TEST(malformed_requests_are_refused)
{
	static const struct {
		int status;
		const char *request;
	} bad[] = {
		{ 400, "\r\n\r\nhello\r\n\r\n" },
		{ 400, "GET /debug/\r\n\r\n" },
		{ 400, "GET debug HTTP/1.1\r\n\r\n" },
		{ 400, "G@T /debug/ HTTP/1.1\r\n\r\n" },
		{ 400, "GET /%zz HTTP/1.1\r\n\r\n" },
		{ 400, "GET /%00 HTTP/1.1\r\n\r\n" },
		{ 400, "GET /% HTTP/1.1\r\n\r\n" },
		{ 400, "GET / HTTP/1.1\r\n\r\n" },
		{ 400, "GET http://localhost/ HTTP/1.1\r\n\r\n" },
		{ 400, "GET http://localhost/debug/ HTTP/1.1\r\nHost: localhost\r\n\r\n" },
		{ 400, "GET / HTTP/1.1\r\nno colon\r\n\r\n" },
		{ 400, "GET / HTTP/1.1\r\nHost: localhost\r\nA : b\r\n\r\n" },
		{ 400, "GET / HTTP/1.1\r\nHost: localhost\r\nA: b\r\n folded\r\n\r\n" },
		{ 400, "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n" },
		{ 400, "GET / HTTP/1.1\nHost: localhost\r\n\r\n" },
		{ 413, "GET /debug/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n" },
		{ 413, "GET /debug/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n" },
		{ 501, "POST /debug/pprof/symbol HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" },
		{ 505, "GET / HTTP/2.0\r\n\r\n" },
		{ 505, "GET / HTTP/1.9\r\n\r\n" },
	};

	serve();
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		ask(bad[i].request);
		if (status_of(answer) != bad[i].status)
			FAIL("%s: %.60s, not %d", bad[i].request, answer, bad[i].status);
	}
	CHECK_EQ(status_of(send_raw("GET / HTTP/1.1\r\nA: \0\r\n\r\n", 25)), 400);
	CHECK_EQ(status_of(get("/debug/")), 200);
}

GO_TEST(a_long_head_is_refused)
{
	static char request[20 << 10];

	serve();
	memset(request, 'a', sizeof request);
	memcpy(request, "GET /", 5);
	CHECK_EQ(status_of(send_raw(request, sizeof request)), 431);
}

/* The status of the answer to a request with these lines in its head. */
static int status_with(const char *target, const char *lines)
{
	char request[1024];

	snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n%sConnection: close\r\n\r\n", target,
	         lines);
	return status_of(ask(request));
}

static void check_names(void)
{
	static const struct {
		int status;
		const char *target, *lines;
	} names[] = {
		{ 200, "/debug/metrics", "Host: localhost\r\n" },
		{ 200, "/debug/metrics", "Host: LOCALHOST:80\r\n" },
		{ 200, "/debug/metrics", "Host: 127.1.2.3\r\n" },
		{ 200, "/debug/metrics", "Host: [::1]:80\r\n" },
		{ 200, "/debug/metrics", "Host: [::ffff:127.0.0.1]:80\r\n" },
		{ 403, "/debug/metrics", "Host: evil.example\r\n" },
		{ 403, "/debug/metrics", "Host: 127.0.0.1.example:80\r\n" },
		{ 403, "/debug/metrics", "Host: localhost.example\r\n" },
		{ 403, "/debug/metrics", "Host: 192.168.1.1\r\n" },
		{ 403, "/debug/metrics", "Host: [::2]\r\n" },
		{ 403, "/debug/metrics", "Host: [::ffff:10.0.0.1]\r\n" },
		{ 403, "/debug/metrics", "Host: [::1].example\r\n" },
		{ 403, "/debug/metrics", "Host: [::1\r\n" },
		{ 403, "/debug/metrics", "Host: \r\n" },
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (status_with(names[i].target, names[i].lines) != names[i].status)
			FAIL("%s %s: %.40s", names[i].target, names[i].lines, answer);
	CHECK_EQ(status_of(ask("GET /debug/metrics HTTP/1.0\r\n\r\n")), 200);
}

GO_TEST(names_that_lead_here_are_refused)
{
	serve();
	check_names();
}

/* The loopback interface has more addresses than two. */
GO_TEST(names_that_lead_to_a_mapped_address_are_refused)
{
	CHECK_EQ(debug_http_serve("[::ffff:127.0.0.1]:0", &port), 0);
	check_names();
}

GO_TEST(other_web_pages_are_refused)
{
	static const struct {
		int status;
		const char *target, *lines;
	} asked[] = {
		{ 403, "/debug/pprof/trace?seconds=0.01", "Sec-Fetch-Site: cross-site\r\n" },
		{ 403, "/debug/pprof/trace?seconds=0.01", "Sec-Fetch-Site: same-site\r\n" },
		{ 403, "/debug/pprof/trace?seconds=0.01", "Sec-Fetch-Site: cross-site\r\n"
		       "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n" },
		{ 403, "/debug/pprof/profile?seconds=0.01", "Sec-Fetch-Site: cross-site\r\n" },
		{ 403, "/debug/pprof/goroutine", "Sec-Fetch-Site: cross-site\r\n" },
		{ 403, "/debug/stats.json", "Sec-Fetch-Site: cross-site\r\n" },
		{ 403, "/debug/stats.json", "Origin: http://evil.example\r\n" },
		{ 403, "/debug/stats.json", "Origin: http://localhost:3000\r\n" },
		{ 403, "/debug/stats.json", "Origin: null\r\n" },
		{ 200, "/debug/stats.json", "Origin: http://localhost\r\n" },
		{ 200, "/debug/stats.json", "Sec-Fetch-Site: same-origin\r\n" },
		{ 200, "/debug/stats.json", "Sec-Fetch-Site: none\r\n" },
		/* The live page may be linked to, but not be embedded. */
		{ 200, "/debug/", "Sec-Fetch-Site: cross-site\r\n"
		       "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n" },
		{ 301, "/", "Sec-Fetch-Site: cross-site\r\n"
		       "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n" },
		{ 403, "/debug/", "Sec-Fetch-Site: cross-site\r\n"
		       "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n" },
		{ 403, "/debug/", "Sec-Fetch-Site: cross-site\r\n" },
	};
	char lines[300];
	int other;

	serve();
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
		snprintf(lines, sizeof lines, "Host: localhost\r\n%s", asked[i].lines);
		if (status_with(asked[i].target, lines) != asked[i].status)
			FAIL("%s %s: %.40s", asked[i].target, lines, answer);
	}
	/* A server that is not local takes any name, and refuses other origins. */
	CHECK_EQ(debug_http_serve("0.0.0.0:0", &other), 0);
	port = other;
	CHECK_EQ(status_with("/debug/stats.json", "Host: me.example\r\n"), 200);
	CHECK_EQ(status_with("/debug/stats.json", "Host: me.example\r\nOrigin: http://evil.example\r\n"), 403);
	CHECK_EQ(status_with("/debug/stats.json", "Host: me.example\r\nOrigin: http://me.example\r\n"), 200);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

GO_TEST(connections_are_kept)
{
	serve();
	ask("GET /debug/pprof/symbol HTTP/1.1\r\nHost: localhost\r\n\r\n"
	    "HEAD /debug/ HTTP/1.1\r\nHost: localhost\r\n\r\n"
	    "GET /debug/pprof/symbol HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
	    "GET /debug/pprof/symbol" END);
	CHECK_EQ(count(answer, "HTTP/1.1 200 OK\r\n"), 4);
	CHECK_EQ(count(answer, "num_symbols: 1\n"), 3);
}

/* A byte at a time, and in halves of what belongs together. */
GO_TEST(requests_that_come_in_pieces)
{
	const char *request = "GET /debug/pprof/symbol HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	int fd;

	serve();
	fd = connect_to();
	for (const char *at = request; *at; at++) {
		goro_write_full(fd, at, 1);
		goro_sleep(GORO_MILLISECOND / 10);
	}
	CHECK_EQ(status_of(read_all(fd)), 200);
}

GO_TEST(too_many_connections)
{
	enum { N = 64 };
	int fd[N];

	serve();
	for (int i = 0; i < N; i++) {
		char byte;

		fd[i] = connect_to();
		goro_write_full(fd[i], "HEAD /debug/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 43);
		CHECK_EQ(goro_read(fd[i], &byte, 1), 1);	/* it is being served */
		/* connections are scarce: the server has hung up */
		if (i >= 31)
			break;
	}
	/* Clients that send no whole request take the rest. */
	for (int i = 32; i < N; i++) {
		fd[i] = connect_to();
		goro_write_full(fd[i], "GET", 3);
	}
	AWAIT(status_of(get("/debug/pprof/cmdline")) == 503);
	for (int i = 32; i < N; i++)
		goro_close(fd[i]);
	AWAIT(status_of(get("/debug/pprof/cmdline")) == 200);
}

static int count_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1000; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* In another process, which has descriptors of its own. */
static void connect_silently(int n, int told)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	char sink[1];
	int fd = -1;

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < n; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&sa, sizeof sa) != 0)
			_exit(1);
	}
	/* Turned away, like most before it. */
	if (read(fd, sink, 1) != 1 || write(told, "", 1) != 1)
		_exit(1);
	pause();
}

GO_TEST(silent_connections_leave_the_program_its_descriptors)
{
	enum { CROWD = 200 };
	int told[2], before;
	pid_t child;
	char byte;

	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 256, 256 });
	serve();
	/* makes the server's and the poller's descriptors */
	goro_close(connect_to());
	CHECK_EQ(pipe(told), 0);
	before = count_descriptors();
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		connect_silently(CROWD, told[1]);
	}
	CHECK_EQ(goro_read(told[0], &byte, 1), 1);
	/* 16, and a few of the runtime's */
	CHECK(count_descriptors() - before < CROWD / 4);
	kill(child, SIGKILL);
}

/* ------------------------------------------------------------------ robustness */

static void ask_garbage(uint64_t seed, goro_waitgroup *wg)
{
	char request[] = "GET /debug/pprof/symbol?0x1+0x2 HTTP/1.1\r\nHost: localhost\r\n"
	                 "Connection: keep-alive\r\nContent-Length: 5\r\n\r\n12345";
	char sink[512];
	int fd = connect_to();

	for (int i = 0; i < 1 + (int)(seed % 7); i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		request[(seed >> 33) % (sizeof request - 1)] = (char)(seed >> 25);
	}
	goro_set_deadline(fd, goro_now() + 20 * GORO_MILLISECOND, goro_now() + seconds(5));
	goro_write_full(fd, request, (seed >> 40) % sizeof request);
	if (seed >> 63)
		while (goro_read(fd, sink, sizeof sink) > 0)
			;
	goro_close(fd);
	goro_waitgroup_done(wg);
}

GO_TEST(garbage_does_no_harm)
{
	goro_waitgroup wg = { 0 };

	serve();
	for (int round = 0; round < SCALED(100); round++) {
		goro_waitgroup_add(&wg, 10);
		for (int i = 0; i < 10; i++)
			go(ask_garbage, (uint64_t)(round * 10 + i) * 7919, &wg);
		goro_waitgroup_wait(&wg);
	}
	AWAIT(status_of(get("/debug/")) == 200);
}

static void asks(goro_waitgroup *wg)
{
	static const char *const request[] = { "GET /debug/stats.json" END, "GET /debug/metrics" END,
		"GET /debug/pprof/goroutine?debug=2" END };
	char sink[4096];

	for (int i = 0; i < 30; i++) {
		int fd = connect_to();

		goro_write_full(fd, request[i % 3], strlen(request[i % 3]));
		CHECK(goro_read(fd, sink, sizeof sink) > 12);
		CHECK(memcmp(sink, "HTTP/1.1 200", 12) == 0);
		while (goro_read(fd, sink, sizeof sink) > 0)
			;
		goro_close(fd);
	}
	goro_waitgroup_done(wg);
}

GO_TEST(many_ask_while_the_program_runs)
{
	goro_waitgroup wg = { 0 };

	serve();
	for (int i = 0; i < 20; i++)
		go(starts_and_ends);
	goro_waitgroup_add(&wg, 8);
	for (int i = 0; i < 8; i++)
		go(asks, &wg);
	goro_waitgroup_wait(&wg);
	store_relaxed(&stop, 1);
}

/* ------------------------------------------------------------------- addresses */

GO_TEST(addresses)
{
	char path[] = "/tmp/goro-debug-XXXXXX", address[64];
	int other;

	CHECK_EQ(goro_debug_serve(NULL), -EINVAL);
	CHECK_EQ(goro_debug_serve(""), -EINVAL);
	CHECK_EQ(goro_debug_serve("localhost"), -EINVAL);
	CHECK_EQ(goro_debug_serve("127.0.0.1:99999"), -EINVAL);
	serve();
	snprintf(address, sizeof address, "%d", port);
	CHECK_EQ(goro_debug_serve(address), -EADDRINUSE);
	CHECK_EQ(debug_http_serve("0.0.0.0:0", &other), 0);
	CHECK(other > 0 && other != port);

	close(mkstemp(path));
	unlink(path);
	snprintf(address, sizeof address, "unix:%s", path);
	CHECK_EQ(goro_debug_serve(address), 0);
	CHECK_EQ(goro_debug_serve(address), -EADDRINUSE);
	int fd = goro_dial("unix", path, goro_now() + seconds(10));
	CHECK(fd >= 0);
	goro_write_full(fd, "GET /debug/pprof/symbol" END, strlen("GET /debug/pprof/symbol" END));
	CHECK_STR(body_of(read_all(fd)), "num_symbols: 1\n");
	unlink(path);
}

static char place[] = "/tmp/goro-debug-XXXXXX", place_address[64];

/* A path where there is nothing. */
static void make_place(void)
{
	close(mkstemp(place));
	unlink(place);
	snprintf(place_address, sizeof place_address, "unix:%s", place);
}

/* A socket of this type there, which does not listen. */
static int bind_there(int type)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type, 0);

	memcpy(sa.sun_path, place, sizeof place);
	CHECK_EQ(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	return fd;
}

/* The server removes the socket that a process has left. */
GO_TEST(a_socket_that_was_left_is_replaced)
{
	static const int type[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };

	make_place();
	for (int i = 0; i < 3; i++) {
		close(bind_there(type[i]));
		CHECK_EQ(goro_debug_serve(place_address), 0);
		unlink(place);
	}
}

static void check_kept(void)
{
	struct stat before, after;

	CHECK_EQ(lstat(place, &before), 0);
	CHECK_EQ(goro_debug_serve(place_address), -EADDRINUSE);
	CHECK_EQ(lstat(place, &after), 0);
	CHECK_EQ(before.st_ino, after.st_ino);
	unlink(place);
}

GO_TEST(what_is_not_a_left_socket_is_kept)
{
	static const int type[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };

	make_place();
	close(open(place, O_WRONLY | O_CREAT, 0600));
	check_kept();
	CHECK_EQ(mkfifo(place, 0600), 0);
	check_kept();
	CHECK_EQ(symlink("/dev/null", place), 0);
	check_kept();
	for (int i = 0; i < 3; i++) {		/* bound: its owner is about to listen */
		int fd = bind_there(type[i]);

		check_kept();
		close(fd);
	}
}

static void starts_to_serve(int *winners, goro_waitgroup *begin, goro_waitgroup *wg)
{
	int error;

	goro_waitgroup_wait(begin);
	error = goro_debug_serve(place_address);
	if (!error)
		__atomic_fetch_add(winners, 1, __ATOMIC_RELAXED);
	else
		CHECK_EQ(error, -EADDRINUSE);
	goro_waitgroup_done(wg);
}

/* All servers find the same socket. */
GO_TEST(a_left_socket_is_replaced_by_one_server)
{
	make_place();
	for (int round = 0; round < 20; round++) {
		goro_waitgroup begin = { 0 }, wg = { 0 };
		int winners = 0;

		close(bind_there(SOCK_STREAM));
		goro_waitgroup_add(&begin, 1);
		goro_waitgroup_add(&wg, 4);
		for (int i = 0; i < 4; i++)
			go(starts_to_serve, &winners, &begin, &wg);
		goro_waitgroup_done(&begin);
		goro_waitgroup_wait(&wg);
		CHECK_EQ(winners, 1);
		goro_close(goro_dial("unix", place, goro_now() + seconds(10)));
		unlink(place);
	}
}

/* Bound to 127.0.0.1 alone: another address of this machine does not answer. */
GO_TEST(without_a_host_it_is_on_the_loopback_interface)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	bool other = false;

	serve();
	sa.sin_port = htons((uint16_t)port);
	inet_pton(AF_INET, "127.0.0.2", &sa.sin_addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	other = connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0;
	close(fd);
	CHECK(!other);
}

/* ------------------------------------------------------------- and the program */

GO_TEST(the_server_is_not_the_programs)
{
	uint64_t mark = goro_leak_mark();
	int fd;

	serve();
	fd = connect_to();
	goro_write_full(fd, "HEAD /debug/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 43);
	goro_read(fd, answer, 100);
	CHECK_EQ(goro_num_goroutine(), 1);
	CHECK_EQ(goro_leak_check(mark, 0, stderr), 0);
}

/* From a plain thread, without goro_run. */
TEST(plain_threads_serve)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	serve();
	sa.sin_port = htons((uint16_t)port);
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	CHECK_EQ(write(fd, "GET /debug/pprof/symbol" END, strlen("GET /debug/pprof/symbol" END)),
	         (ssize_t)strlen("GET /debug/pprof/symbol" END));
	CHECK_EQ(status_of(read_all(fd)), 200);
}

/* A socket without a file, of this test alone. */
static char private_name[32], private_address[64];

static void make_private(void)
{
	snprintf(private_name, sizeof private_name, "@goro-debug-%d", (int)getpid());
	snprintf(private_address, sizeof private_address, "unix:%s", private_name);
}

/* All goroutines wait, but a client can look at them: that is no deadlock. */
SEEN static void all_asleep(void)
{
	goro_debug_serve(private_address);
	goro_chan_recv(goro_chan_make(0, 0), NULL);
	NO_TAIL_CALL();
}

static int dial_private(void)
{
	int fd;

	while ((fd = goro_dial("unix", private_name, goro_now() + seconds(10))) < 0)
		goro_sleep(GORO_MILLISECOND);
	return fd;
}

static const char *look(void)
{
	int fd = dial_private();

	goro_write_full(fd, "GET /debug/pprof/goroutine?debug=2" END,
	                strlen("GET /debug/pprof/goroutine?debug=2" END));
	return read_all(fd);
}

static void look_and_end(void)
{
	AWAIT(strstr(look(), "[chan receive]:\n")); /* it may still be on its way there */
	CHECK_CONTAINS(answer, "all_asleep(...)");
}

TEST(a_program_that_sleeps_can_be_looked_at)
{
	pid_t pid;

	make_private();
	pid = fork();
	if (pid == 0) {
		program = all_asleep;
		child();
	}
	run(look_and_end);
	CHECK_EQ(o.status, 0);
	kill(pid, SIGKILL);
}

/* An unmodified program. */
static void asked_by_the_environment(void)
{
	int fd = dial_private();

	goro_write_full(fd, "GET /debug/pprof/symbol" END, strlen("GET /debug/pprof/symbol" END));
	CHECK_EQ(status_of(read_all(fd)), 200);
}

static void does_nothing(void)
{
}

TEST(the_environment_asks_for_it)
{
	make_private();
	setenv("GORO_DEBUG_SERVE", private_address, 1);
	run(asked_by_the_environment);
	CHECK_EQ(o.status, 0);
	setenv("GORO_DEBUG_SERVE", "0", 1);
	run(does_nothing);
	CHECK_EQ(o.status, 0);
	setenv("GORO_DEBUG_SERVE", "nowhere", 1);
	run(does_nothing);
	CHECK_EQ(o.status, 0);
}

/* --------------------------------------- programs that close all descriptors */

static int next_number(void)
{
	int fd = dup(1);

	close(fd);
	return fd;
}

/* A thread of the runtime has the next number for a moment, until it has moved a
 * descriptor out of the way (own_fd_take) or has read a file in /proc. The lowest of
 * several is the program's. */
static int lowest_number(void)
{
	int lowest = next_number();

	for (int i = 0; i < 10; i++) {
		int fd = next_number();

		lowest = fd < lowest ? fd : lowest;
		goro_sleep(GORO_MILLISECOND);
	}
	return lowest;
}

/* To wait for, since a thread of the runtime may have the number for a moment. */
static bool next_number_is(int wanted)
{
	return next_number() == wanted;
}

static int connect_as(int wanted)
{
	int fd;

	while ((fd = connect_to()) != wanted) {
		CHECK(fd > wanted);
		goro_close(fd);
		AWAIT(next_number_is(wanted));
	}
	return fd;
}

GO_TEST(its_sockets_leave_the_low_numbers_to_the_program)
{
	int before, fd;

	if (own_fd_near)	/* TSan has a thread before main */
		SKIP("connections have low numbers where the program had threads before");
	before = lowest_number();
	serve();
	AWAIT(next_number_is(before));
	fd = connect_as(before);
	CHECK(goro_write_full(fd, "GET /debug/stats.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 51) > 0);
	CHECK(goro_read(fd, answer, sizeof answer) > 0);
	AWAIT(next_number_is(before + 1));	/* the connection is kept */
	goro_close(fd);
}

/* Not by libc's close: that a program closes what another thread writes to is the
 * program's mistake, which ThreadSanitizer would report. */
static void close_all(void)
{
	for (int fd = 3; fd < 2048; fd++)
		syscall(SYS_close, fd);
}

/* Opens descriptors up to the limit, with the numbers of all that were closed, less
 * 32. */
static int open_all(int *mine, int max)
{
	int n = 0;

	while (n < max && (mine[n] = memfd_create("mine", MFD_CLOEXEC)) >= 0)
		n++;
	CHECK(n > 32);
	for (int i = 0; i < 32; i++)
		close(mine[--n]);
	return n;
}

static void check_untouched(const int *mine, int n)
{
	struct stat st;

	for (int i = 0; i < n; i++) {
		CHECK_EQ(fstat(mine[i], &st), 0);
		CHECK_EQ(st.st_size, 0);
		CHECK_EQ(lseek(mine[i], 0, SEEK_CUR), 0);
	}
}

/* Sends a request and does not read the answer. */
static void ask_for(const char *path)
{
	char request[200];
	int fd = connect_to();
	int n = snprintf(request, sizeof request, "GET %s" END, path);

	goro_write_full(fd, request, (size_t)n);
}

static void closes_all_while(const char *path)
{
	static int mine[1100];
	int n;

	serve();
	CHECK_EQ(status_of(get("/debug/stats.json")), 200);
	ask_for(path);
	goro_sleep(100 * GORO_MILLISECOND);
	close_all();
	n = open_all(mine, 1100);
	for (int i = 0; i < 20; i++)
		goro_sleep(100 * GORO_MILLISECOND);
	check_untouched(mine, n);
	for (int i = 0; i < n; i++)
		close(mine[i]);
	while (status_of(get("/debug/stats.json")) != 200)
		goro_sleep(100 * GORO_MILLISECOND);
}

GO_TEST(it_goes_on_where_all_descriptors_are_closed) { closes_all_while("/debug/"); }
GO_TEST(a_profile_is_not_written_to_what_is_opened_next) { closes_all_while("/debug/pprof/profile?seconds=1"); }
GO_TEST(a_trace_is_not_sent_to_what_is_opened_next) { closes_all_while("/debug/pprof/trace?seconds=1"); }
