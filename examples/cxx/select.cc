/*
 * select.cc - a goroutine that serves requests, with a timeout, a ticker and an end.
 *
 *	c++ -std=c++17 select.cc $(pkg-config --cflags --libs goro)
 */
#include <goro.hpp>

#include <cstdio>
#include <string>

using namespace std::chrono_literals;

/* A request carries the channel that the answer goes to. */
struct request {
	std::string key;
	goro::chan<std::string> answer;
};

/* Owns the table: no lock is needed. */
static void serve(goro::chan<request> requests, goro::context ctx)
{
	goro::ticker every(1h);
	bool goes_on = true;

	while (goes_on)
		goro::select(
			goro::on_recv(requests, [&](std::optional<request> r) {
				if (r->key != "lost")
					r->answer.send("value of " + r->key);
			}),
			goro::on_recv(every.channel(), [](auto) { std::printf("an hour later\n"); }),
			goro::on_done(ctx, [&] { goes_on = false; }));
	std::printf("served\n");
}

static void ask(goro::chan<request> &requests, const std::string &key)
{
	goro::chan<std::string> answer(1);

	requests.send({ key, answer });
	goro::select(
		goro::on_recv(answer, [](auto value) { std::printf("%s\n", value->c_str()); }),
		goro::on_timeout(20ms, [&] { std::printf("no answer to %s\n", key.c_str()); }));
}

static int start(int, char **)
{
	goro::context ctx = goro::context::background().with_cancel();
	goro::chan<request> requests;
	auto server = goro::spawn(serve, requests, ctx);

	ask(requests, "one");
	ask(requests, "lost");
	ask(requests, "two");
	ctx.cancel();
	server.join();
	return 0;
}

GORO_MAIN(start)
