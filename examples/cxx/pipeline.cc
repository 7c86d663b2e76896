/*
 * pipeline.cc - stages connected by channels of strings: lines, words, counts. A group
 * waits for all stages, and its context ends them if one fails.
 *
 *	c++ -std=c++17 pipeline.cc $(pkg-config --cflags --libs goro)
 */
#include <goro.hpp>

#include <cstdio>
#include <map>
#include <sstream>
#include <string>

static const char *const text[] = {
	"share memory by communicating",
	"do not communicate by sharing memory",
	"memory by memory",
};

static int start(int, char **)
{
	goro::chan<std::string> lines, words(16);
	std::map<std::string, int> counts;
	goro::group stages;

	stages.go([lines]() mutable {
		goro::defer end([&] { lines.close(); });

		for (const char *line : text)
			lines.send(line);
	});
	stages.go([lines, words](const goro::context &ctx) mutable {
		goro::defer end([&] { words.close(); });

		for (const std::string &line : lines) {
			std::istringstream in(line);

			for (std::string word; in >> word;)
				if (goro::select(goro::on_send(words, word), goro::on_done(ctx)) == 1)
					return ctx.cause();
		}
		return 0;
	});
	stages.go([words, &counts]() mutable {
		for (const std::string &word : words)
			counts[word]++;
	});
	if (stages.wait() != 0)
		return 1;
	for (const auto &[word, n] : counts)
		std::printf("%d %s\n", n, word.c_str());
	return 0;
}

GORO_MAIN(start)
