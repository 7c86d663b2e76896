/*
 * preempt.pml - a goroutine stopped where it stands waits for its own thread, which is handed a P.
 * See src/sched/turn.c, src/preempt/preempt.c and src/sched/idle.c m_recall_p.
 *
 * Proves: each P has one owner at a time, and none is lost; the stopped goroutine goes on exactly once,
 * with a P, and on its own thread. Thread 0 has the goroutine: it queues it, gives the P away and
 * sleeps; when the goroutine is done it goes idle like any M. Thread 1 is another M. At any time: sysmon
 * recalls a P from thread 0, which was woken and gets no CPU; a waker gives an idle P to an idle M; a
 * poke wakes a thread without a P.
 *
 * Memory: next_p is taken by an exchange and by a CAS, all else is under sched.lock. So every step is
 * sequentially consistent here. The crossing before it is own_p.pml.
 *
 * Left out: other goroutines; counts of spinning Ms (spinner.pml); the stop of the world; how threads
 * are made; a goroutine whose P was taken while it slept (it gets in the same line, without a P).
 *
 * Variants:
 *	TWO_PS		thread 1 has a P of its own
 *
 * Twins:
 *	QUEUE_LATE	turn_wait queues the goroutine after it has given the P away
 *	BOUND_LATE	turn_wait binds the goroutine to its thread after it has queued it
 *	TAKE_PLAIN	m_await_p takes next_p by a load and a store, not by an exchange
 *	TRUST_NOTE	m_await_p takes each wake for a P
 *	RECALL_BLIND	m_recall_p queues the goroutine of the M without a look whether it has one
 */
#if defined(TWO_PS) || defined(BOUND_LATE)
#define PS 2
#else
#define PS 1
#endif
#define POKES 1
#define WAKES 1
#define RECALLS 1

#define WAY 2			/* a P's owner: on its way, or with whoever gives it away */
#define IDLE 3			/* a P's owner: sched.idle_p */
#define NONE 2			/* no P */

bool sched_lock;
byte owner[2];			/* of each P: thread 0 or 1, WAY, IDLE */
byte next_p[2] = NONE;		/* m->next_p: a P */
bool note[2];			/* m->park */
bool idle_m[2];			/* on the list of idle Ms */
bool need_m[2];			/* on sched.need_m: each P */
bool queued;			/* the goroutine is in the global queue */
bool bound;			/* gp->locked_m is thread 0, and its locked_g is the goroutine */
byte resumed;			/* times that it went on */

inline lock() { atomic { !sched_lock -> sched_lock = true } }
inline unlock() { sched_lock = false }

/* src/sched/idle.c m_hand_p */
inline hand(to, pp)
{
	atomic { assert(next_p[to] == NONE && owner[pp] == WAY); next_p[to] = pp }
	note[to] = true
}

/* src/sched/idle.c m_await_p, src/base/lock.c note_sleep, src/sched/p.c p_bind */
inline await(me)
{
	do
#ifdef TAKE_PLAIN
	:: mine = next_p[me];
		next_p[me] = NONE;
#else
	:: atomic { mine = next_p[me]; next_p[me] = NONE }
#endif
		if
		:: mine != NONE -> break
		:: else
		fi;
end:		atomic { note[me] -> note[me] = false }
#ifdef TRUST_NOTE
		atomic { mine = next_p[me]; next_p[me] = NONE }
		break
#endif
	od;
	atomic { assert(mine < PS && owner[mine] == WAY); owner[mine] = me }
}

/* src/sched/idle.c m_start_unlock */
inline start_unlock(pp)
{
	if
	:: idle_m[0] -> idle_m[0] = false; unlock(); hand(0, pp)
	:: !idle_m[0] && idle_m[1] -> idle_m[1] = false; unlock(); hand(1, pp)
	:: !idle_m[0] && !idle_m[1] && queued ->
		/* src/sched/runq.c globq_take_bound, src/sched/idle.c hand_to_bound */
		queued = false;
		hand(0, pp);
		unlock()
	:: else -> need_m[pp] = true; unlock()		/* need_m_put */
	fi
}

/* src/sched/p.c p_handoff, p_unbind */
inline handoff(pp)
{
	owner[pp] = WAY;
	work = queued;
	lock();
	if
	:: work || queued -> start_unlock(pp)
	:: else -> owner[pp] = IDLE; unlock()
	fi;
	work = false
}

proctype m(byte me)
{
	byte mine = NONE;
	bool work;

	if
	:: me == 0 -> mine = 0
	:: me == 1 && PS == 2 -> mine = 1; goto look
	:: else -> goto stop
	fi;
	/* src/sched/turn.c turn_wait */
#ifndef BOUND_LATE
	bound = true;
#endif
#ifndef QUEUE_LATE
	lock();
	queued = true;
	unlock();
#endif
#ifdef BOUND_LATE
	bound = true;
#endif
	/* src/sched/m.c m_stop_locked */
	handoff(mine);
#ifdef QUEUE_LATE
	lock();
	queued = true;
	unlock();
#endif
	await(me);
	atomic { assert(bound && !queued && owner[mine] == 0); bound = false; resumed++ }
look:	/* src/sched/sched.c take_global, next_goroutine */
	lock();
	if
	:: queued ->
		queued = false;
		unlock();
		atomic { assert(bound && me != 0); owner[mine] = WAY }
		hand(0, mine);			/* src/sched/m.c m_hand_to_locked */
		goto stop
	:: else -> unlock()
	fi;
	/* src/sched/sched.c release_and_sleep, src/sched/p.c p_idle_put */
	lock();
	if
	:: queued -> unlock(); goto look
	:: else -> atomic { assert(owner[mine] == me); owner[mine] = IDLE }
		unlock()
	fi;
stop:	/* src/sched/idle.c go_idle, m_stop */
	mine = NONE;
	lock();
	if
	:: need_m[0] || need_m[1] ->
		mine = (need_m[0] -> 0 : 1);
		need_m[mine] = false;
		unlock();
		atomic { assert(owner[mine] == WAY); owner[mine] = me }
		goto look
	:: else -> idle_m[me] = true; unlock()
	fi;
	await(me);
	goto look
}

/* src/preempt/retake.c on_its_way, src/sched/idle.c m_recall_p */
active proctype sysmon()
{
	byte i, pp;
	bool work;

	do
	:: i < RECALLS ->
		i++;
		if
		:: atomic { bound && next_p[0] != NONE -> pp = next_p[0] }
		:: resumed == 1 -> break
		fi;
		lock();
		if
		:: atomic { next_p[0] == pp -> next_p[0] = NONE }
#ifndef RECALL_BLIND
			if
			:: !bound -> unlock(); hand(0, pp)
			:: else ->
#endif
				assert(!queued && bound);
				queued = true;
				unlock();
				handoff(pp)
#ifndef RECALL_BLIND
			fi
#endif
		:: else -> unlock()
		fi;
		pp = 0
	:: else -> break
	od
}

/* src/sched/park.c wake_slow: for work that another M finds first. */
active proctype waker()
{
	byte i, pp;

	do
	:: i < WAKES ->
		i++;
		lock();
		if
		:: owner[0] == IDLE -> owner[0] = WAY; start_unlock(0)
		:: owner[0] != IDLE && PS == 2 && owner[1] == IDLE -> owner[1] = WAY; start_unlock(1)
		:: else -> unlock()
		fi
	:: break
	od
}

active proctype poker()
{
	byte i;

	do
	:: i < POKES -> i++; note[0] = true
	:: i < POKES -> i++; note[1] = true
	:: break
	od
}

init
{
	atomic {
		owner[1] = (PS == 2 -> 1 : IDLE);
		run m(0);
		run m(1)
	}
	resumed == 1;
end:	timeout;
	assert(!queued && !need_m[0] && !need_m[1] && owner[0] == IDLE && owner[1] == IDLE &&
	       next_p[0] == NONE && next_p[1] == NONE)
}
