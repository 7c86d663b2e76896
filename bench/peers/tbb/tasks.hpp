/*
 * tasks.hpp - what the oneTBB programs share: an arena with so many threads.
 */
#ifndef TASKS_HPP
#define TASKS_HPP

#include "peer.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

/* Runs main_fn in the arena. The limit is raised too, since TBB has no more
 * threads than CPUs otherwise. */
template <typename Fn> int with_arena(Fn main_fn)
{
	tbb::global_control limit{ tbb::global_control::max_allowed_parallelism,
	                           (std::size_t)peer_procs() };
	tbb::task_arena arena{ peer_procs() };

	arena.execute(main_fn);
	return 0;
}

#endif
