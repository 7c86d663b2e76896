/*
 * tasks.cc - goroutines with results: started with captures, joined, one of them throws.
 *
 *	c++ -std=c++17 tasks.cc $(pkg-config --cflags --libs goro)
 */
#include <goro.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

static long collatz(long n)
{
	long steps = 0;

	if (n < 1)
		throw std::invalid_argument("collatz(" + std::to_string(n) + ")");
	for (; n != 1; steps++)
		n = n % 2 ? 3 * n + 1 : n / 2;
	return steps;
}

static int start(int, char **)
{
	std::vector<goro::task<long>> tasks;

	/* As many goroutines as there are numbers. Each argument is copied in. */
	for (long n : { 27L, 97L, 871L, 0L })
		tasks.push_back(goro::spawn(collatz, n));
	for (goro::task<long> &t : tasks) {
		try {
			std::printf("%ld steps\n", t.join());
		} catch (const std::invalid_argument &e) {
			std::printf("not defined: %s\n", e.what());
		}
	}

	/* A lambda may own what it works on; the result is moved out. */
	auto text = std::make_unique<std::string>("moved in, moved out");
	goro::task t = goro::spawn([text = std::move(text)]() mutable { return std::move(text); });

	std::printf("%s\n", t.join()->c_str());
	return 0;
}

GORO_MAIN(start)
