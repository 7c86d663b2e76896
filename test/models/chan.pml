/*
 * chan.pml - channels and select: who takes a waiter, and who wakes it. See src/sync/chan.h,
 * src/sync/select.c and src/sync/deadline.c.
 *
 * Proves: a select that waits on two channels, with a deadline, is woken once, by one of: a sender on
 * the first channel, a sender on the second one, the deadline. A value is received if and only if its
 * send said so. When the select goes on, its waiters are in no queue and its deadline's fire is over.
 * Nobody touches a channel after it was freed: each sender drops the last reference of its channel when
 * its send is over, and the select comes back to take its waiters off (orphan, selects).
 *
 * Memory: all is under the channels' locks, or a CAS (select_seq). So every step is sequentially
 * consistent here; what locks order is in park.pml.
 *
 * Left out: buffers, closed channels (a close takes waiters as a send does), plain waiters in the same
 * queue, tries without the lock, several cases on one channel. The sends are of the kind that does not
 * wait (goro_chan_try_send), and come once the select waits.
 *
 * Twins:
 *	NO_CLAIM	a waker takes a waiter of a select without a CAS on select_seq
 *	NO_STOP		the select goes on without stopping its deadline (deadline_disarm)
 *	NO_ORPHAN	the last unref frees a channel although a select will come back to it
 *	UNLOCK_EARLY	after_select arms the deadline after it has unlocked the channels
 */
#define CHANS 2

typedef chan_ {
	bool locked;
	bool waits;		/* the select's waiter is in recvq */
	bool orphan;
	byte selects;
	bool freed
};
chan_ c[CHANS];

bool claimable;			/* select_seq is odd */
byte won;			/* the case that was taken + 1; CHANS + 1: the deadline */
byte woken;			/* how often the select was made ready */
bool firing;			/* the deadline is on no heap, its fire is under way */
bool armed;			/* the deadline is on a heap */
bool began;			/* it waits */
bool goes_on;			/* it is over */
byte sent;			/* values that were handed over */
byte got;			/* values received */

inline lock(i) { atomic { assert(!c[i].freed); !c[i].locked -> c[i].locked = true } }
inline unlock(i) { atomic { assert(!c[i].freed); c[i].locked = false } }

inline ready() { atomic { assert(woken == 0); woken++ } }

/* src/sync/chan.h select_claim */
inline select_claim(ok)
{
#ifdef NO_CLAIM
	ok = claimable;
	claimable = false
#else
	atomic { ok = claimable; claimable = false }
#endif
}

/* src/sync/select.c select_and_exit */
active proctype selecting()
{
	byte i;
	bool over;

	/* src/sync/select.c lock_all; try_all finds nobody; wait_for_any */
	lock(0);
	lock(1);
	claimable = true;
	d_step { c[0].waits = true; c[0].selects++; c[1].waits = true; c[1].selects++ };
	began = true;
	woken == 1;
	/* src/sync/deadline.h deadline_disarm, src/timer/heap.c timer_stop */
#ifndef NO_STOP
	armed = false;
	!firing;
#endif
	/* src/sync/select.c leave_all, src/sync/chan.c chan_leave */
	do
	:: i < CHANS && won != i + 1 ->
		lock(i);
		d_step {
			c[i].waits = false;
			c[i].selects--;
			over = c[i].orphan && c[i].selects == 0
		}
		unlock(i);
		if
		:: over -> atomic { assert(!c[i].freed); c[i].freed = true }
		:: else
		fi;
		i++
	:: i < CHANS && won == i + 1 -> i++
	:: else -> break
	od;
	got = (won <= CHANS -> got + 1 : got);
	assert(!firing && !armed && !c[0].waits && !c[1].waits);
	goes_on = true
}

/* src/sync/select.c after_select: on the thread that the select's goroutine has left */
active proctype after()
{
	began;
#ifdef UNLOCK_EARLY
	unlock(0);
	unlock(1);
	armed = true;
#else
	armed = true;
	unlock(0);
	unlock(1);
#endif
}

/* src/sync/chan.c goro_chan_try_send */
inline try_send(i)
{
	lock(i);
	if
	:: c[i].waits ->
		/* src/sync/chan.h chan_send_now, chan_take_waiter, chan_claim_select */
		c[i].waits = false;
		select_claim(ok);
		if
		:: ok -> d_step { won = i + 1; c[i].selects--; sent++ }
		:: else
		fi
	:: else
	fi;
	unlock(i);
	if
	:: ok -> ready()
	:: else
	fi
}

active [CHANS] proctype sender()
{
	byte i = _pid - 2;
	bool ok, over;

	began;
	try_send(i);
	/* src/sync/chan.c goro_chan_unref, last_unref */
	lock(i);
	c[i].orphan = true;
#ifdef NO_ORPHAN
	over = true;
#else
	over = c[i].selects == 0;		/* is_abandoned */
#endif
	unlock(i);
	if
	:: over -> atomic { assert(!c[i].freed); c[i].freed = true }
	:: else
	fi;
	/* At the end. */
	goes_on;
	assert(sent <= 1)
}

/* src/sync/select.c deadline_comes */
active proctype deadline()
{
	bool ok;

	if
	:: atomic { armed -> armed = false; firing = true };	/* src/timer/heap.c timers_take_due */
		assert(!goes_on);
		select_claim(ok);
		if
		:: ok -> won = CHANS + 1
		:: else
		fi;
		assert(!goes_on);
		firing = false;			/* src/timer/timer.h timer_fired */
		if
		:: ok -> ready()
		:: else
		fi
	:: goes_on
	fi;
	goes_on;
	assert(woken == 1 && sent == got && c[0].selects == 0 && c[1].selects == 0)
}
