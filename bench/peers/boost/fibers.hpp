/*
 * fibers.hpp - what the Boost.Fiber programs share: the threads that fibers run
 * on, and how fibers are started.
 *
 * With one processor the scheduler is Boost's default, round_robin. With more,
 * each thread has a work_stealing scheduler that does not sleep when there is
 * nothing to do, again the default: one that sleeps is not woken to steal, and
 * the second thread would hardly ever help. Only where the workload is to be woken do
 * threads sleep.
 * Stacks come from malloc, as in Boost's own benchmarks: the cheapest that it
 * offers to several threads (its pooled stacks are for one only). They are of four
 * pages; two, as there, overflow with work stealing. malloc is told to keep what
 * is freed; else each batch of fibers costs page faults.
 */
#ifndef FIBERS_HPP
#define FIBERS_HPP

#include "peer.h"

#include <boost/fiber/algo/work_stealing.hpp>
#include <boost/fiber/all.hpp>
#include <malloc.h>
#include <mutex>
#include <thread>
#include <vector>

namespace fibers = boost::fibers;

constexpr std::size_t stack_bytes = 16384;

/* launch::post: the starter goes on and the fiber is queued, as go() does. */
template <typename... Args>
fibers::fiber start(Args &&...args)
{
	static fibers::fixedsize_stack stacks{ stack_bytes };

	return fibers::fiber{ fibers::launch::post, std::allocator_arg, stacks,
	                      std::forward<Args>(args)... };
}

/* Runs main_fn in the first thread, with the others there to steal from it. */
class Threads {
public:
	template <typename Fn> static int run(Fn main_fn, bool sleep = false)
	{
		mallopt(M_TRIM_THRESHOLD, 1 << 30);
		mallopt(M_TOP_PAD, 16 << 20);
		Threads t{ peer_procs(), sleep };

		main_fn();
		t.end();
		return 0;
	}

private:
	Threads(int count, bool sleep)
	{
		if (count == 1)
			return;
		for (int i = 1; i < count; i++)
			threads.emplace_back([this, count, sleep] { worker(count, sleep); });
		steal_among(count, sleep);
	}

	/* Returns when so many threads have called it. */
	static void steal_among(int count, bool sleep)
	{
		fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(
			count, sleep);
	}

	void worker(int count, bool sleep)
	{
		steal_among(count, sleep);
		std::unique_lock<fibers::mutex> lock{ end_lock };
		ended.wait(lock, [this] { return over; });
	}

	void end()
	{
		{
			std::unique_lock<fibers::mutex> lock{ end_lock };

			over = true;
		}
		ended.notify_all();
		for (auto &t : threads)
			t.join();
	}

	fibers::mutex end_lock;
	fibers::condition_variable ended;
	bool over = false;
	std::vector<std::thread> threads;
};

#endif
