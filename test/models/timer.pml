/*
 * timer.pml - a timer stopped, started again and freed, against its fire. See "Stopping against
 * firing" in src/timer/heap.c and the opening comment of src/sync/time.c.
 *
 * Proves: after a stop or a reset no value of an earlier start is received; a stop's answer is right (it
 * has cancelled a fire to come, or dropped a value, or says that neither was there); a timer is put on
 * a heap only while it is on none and not firing; when it is freed no fire is under way, and none
 * comes. One goroutine stops and resets the timer in any order, OPS times, and frees it. Two threads
 * fire what is due, from two heaps: each reset may put the timer on another one. Every start is due at
 * once.
 *
 * Memory: heap and timer are under locks. Two words are read without: heap (timer_try_stop) and firing.
 * t->heap becomes NULL after firing is set, by a release store, and is read by acquire before firing.
 * The twin FIRING_LATE is that order. All else is sequentially consistent.
 *
 * Left out: times, the order in the heap, sleeps, tickers, timer_change (a reset that finds the timer on
 * its own P's heap and moves it, under the heap's lock), timers_move.
 *
 * Twins:
 *	FIRING_LATE	timers_take_due takes the timer off the heap before it marks it as firing
 *	NO_SETTLE	a reset starts the timer although a fire that came too late is under way
 *	NO_ARMED	a fire sends although its timer was stopped meanwhile
 *	FREE_EARLY	goro_timer_free does not wait for a fire
 */
#define OPS 3
#define NONE 2

bool time_lock;			/* the channel's lock */
bool heap_lock[2];
byte heap = NONE;		/* t->heap */
bool firing;			/* t->firing */
bool armed;
byte start;			/* starts so far */
byte value;			/* the channel's value: the start that it is of; 0: empty */
bool freed;
bool over;
bool stopped;			/* a stop was the last call */

inline lock(l) { atomic { !l -> l = true } }
inline unlock(l) { l = false }

/* src/timer/heap.c timer_try_stop */
inline try_stop()
{
	do
	:: ts = heap;				/* load_acquire */
		if
		:: ts == NONE -> break
		:: else
		fi;
		lock(heap_lock[ts]);
		here = (heap == ts);
		if
		:: here -> heap = NONE
		:: else
		fi;
		unlock(heap_lock[ts]);
		if
		:: here -> break
		:: else
		fi
	od;
	here = false; ts = 0
}

/* src/sync/time.c disarm */
inline disarm()
{
	pending = pending || armed;
	armed = false;
	try_stop();
	if
	:: value != 0 -> value = 0; pending = true
	:: else
	fi
}

/* src/sync/time.c goro_timer_stop */
inline stop()
{
	lock(time_lock);
	expected = (armed || value != 0);
	disarm();
	assert(pending == expected);
	stopped = true;
	unlock(time_lock);
	pending = false; expected = false
}

active proctype user()
{
	byte ops, ts;
	bool pending, expected, here;

	do
	:: ops < OPS -> ops++; stop()
	:: ops < OPS ->
		ops++;
		/* src/sync/time.c timer_reset, disarm_and_settle */
		lock(time_lock);
		disarm();
#ifndef NO_SETTLE
		do
		:: firing ->
			unlock(time_lock);
			!firing;			/* src/timer/heap.c timer_wait_fired */
			lock(time_lock);
			disarm()
		:: else -> break
		od;
#endif
		assert(heap == NONE && !firing);	/* src/sched/timers.c timer_start */
		atomic { start++; stopped = false };
		if
		:: ts = 0
		:: ts = 1
		fi;
		/* src/timer/heap.c timers_put */
		lock(heap_lock[ts]);
		heap = ts;
		unlock(heap_lock[ts]);
		armed = true;
		unlock(time_lock);
		pending = false; ts = 0
	:: ops < OPS && value != 0 ->
		/* A receive. */
		lock(time_lock);
		assert(value == start || value == 0);
		value = 0;
		unlock(time_lock)
	:: ops == OPS -> break
	od;
	/* src/sync/time.c goro_timer_free, src/timer/heap.c timer_stop */
	stop();
#ifndef FREE_EARLY
	do
	:: try_stop();
		!firing;
		if
		:: heap == NONE -> break
		:: else
		fi
	od;
#endif
	freed = true;
	over = true
}

active [2] proctype fires()
{
	byte me = _pid - 1;
	bool due;
	byte mine;		/* the start that it fires for */

	do
	:: heap == me ->
		/* src/timer/heap.c timers_take_due */
		lock(heap_lock[me]);
		due = (heap == me);
		mine = start;
		if
		:: due ->
#ifdef FIRING_LATE
			heap = NONE;
			firing = true;
#else
			firing = true;
			heap = NONE;
#endif
		:: else
		fi;
		unlock(heap_lock[me]);
		if
		:: due ->
			/* src/sync/time.c fire_send */
			assert(!freed);
			lock(time_lock);
			if
#ifdef NO_ARMED
			:: true ->
#else
			:: armed ->
#endif
				assert(!stopped && mine == start);
				armed = false;
				value = mine
			:: else
			fi;
			unlock(time_lock);		/* src/sync/time.c unlock_fired */
			assert(!freed && firing);
			firing = false;
			due = false; mine = 0
		:: else
		fi
	:: over -> break
	od
}
