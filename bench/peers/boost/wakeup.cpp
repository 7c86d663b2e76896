// wakeup - how late a sleep of a millisecond ends, everything asleep: threads, too, since one
// that does not sleep cannot be woken, and takes all of a CPU.
#include "fibers.hpp"

#include <chrono>

static const int SAMPLES = 400;

int main()
{
	return Threads::run([] {
		static int64_t sample[SAMPLES];
		int early = 0;

		for (auto &s : sample) {
			int64_t end = measure_now() + 1000000;

			boost::this_fiber::sleep_for(std::chrono::milliseconds(1));
			s = measure_now() - end;
			early += s < 0;
		}
		peer_report_latency("wakeup.sleep", sample, SAMPLES, "%d early", early);
	}, true);
}
