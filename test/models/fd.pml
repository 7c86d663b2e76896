/*
 * fd.pml - a descriptor's users, its waiters, its closing, and the next file with its number.
 * See "The word" in src/io/fd.c and "Waiting" in src/io/fd_wait.c.
 *
 * Proves: close(2) is called once for each file that goro_close closes, when it has no users, and
 * never for a file that got the number since; a reader that waits goes on, by the event or by the
 * close; every goro_close returns. A reader and a call that does not wait come at any time. Two
 * goroutines close the first file, or the second one the next file with the number. The poller reports
 * one edge, and nobody need close; or it reports none, and each file is closed.
 *
 * Memory: the word changes by locked instructions only, all else is under the descriptor's lock, but
 * for seq, which is read by acquire before the try. So every step is sequentially consistent here.
 *
 * Left out: deadlines (timer.pml), batches, files whose calls block (a closer that does not wait),
 * descriptors that the program closes by itself (epochs), several waiters.
 *
 * Twins:
 *	NO_SEQ		a reader that found nothing waits without a look whether an event came since
 *	LOOK_EARLY	a reader looks at CLOSED before it takes the lock to wait
 *	NO_USERS	goro_close does not wait for the users
 *	NO_CLOSING	finish_close opens the word before it calls close(2)
 *	NO_GEN		closing_over ends any CLOSING, not only its own
 */
#define F_CLOSED 1
#define F_CLOSING 2
#define F_WAITED 4

#define READER 0
#define CALLER 1
#define CLOSER 2			/* and CLOSER + 1 */
#define ALL 4

/* The word. */
byte refs, flags, gen;

byte file = 1;			/* that the kernel has under the number: 1, then 2; 0: none */
bool no_next;			/* there will be no second file */
#define UNKNOWN 2
byte edge = UNKNOWN;		/* whether the poller reports one; if not, each file is closed */
bool made;			/* the second file's fd_made is over */
bool f_lock;
bool data;			/* something is there to be read */
byte seq;
bool reads[ALL];		/* waits in the readers' queue */
bool writes[ALL];		/* waits in the writers' queue */
bool ready[ALL];		/* was taken off it */
byte users;			/* between fd_enter and fd_leave, but for the closer */
byte closed[3];			/* calls of close(2) for each file */

inline lock() { atomic { !f_lock -> f_lock = true } }
inline unlock() { f_lock = false }

/* src/io/fd_wait.c fd_take_off_all */
inline take_off_readers()
{
	d_step {
		i = 0;
		do
		:: i < ALL && reads[i] -> reads[i] = false; ready[i] = true; i++
		:: i < ALL && !reads[i] -> i++
		:: else -> break
		od;
		i = 0
	}
}

inline take_off_writers()
{
	d_step {
		i = 0;
		do
		:: i < ALL && writes[i] -> writes[i] = false; ready[i] = true; i++
		:: i < ALL && !writes[i] -> i++
		:: else -> break
		od;
		i = 0
	}
}

/* src/io/fd_wait.c fd_enqueue; parks, and releases the lock */
inline wait_reading(me)
{
	reads[me] = true;
	unlock();
	atomic { ready[me] -> ready[me] = false }
}

/* src/io/fd.c finish_close, closing_over; was 1 if the caller is counted */
inline finish_close(counted)
{
	lock();
	atomic {
		if
		:: !(flags & F_CLOSED) -> mine = 0
		:: else ->
			gen++;
			refs = refs - counted;
			mine = gen;
#ifdef NO_CLOSING
			flags = 0
#else
			flags = F_CLOSING
#endif
		fi
	}
	if
	:: mine == 0 -> unlock()
	:: else ->
		/* src/io/fd.c fd_forget */
		take_off_readers();
		take_off_writers();
		unlock();
		/* close(2) */
		atomic {
			assert(users == 0 && (target == 0 || target == file));
			closed[file]++;
			assert(closed[file] == 1);
			file = 0
		}
		lock();
#ifdef NO_GEN
		if
		:: flags & F_CLOSING -> flags = flags & ~F_CLOSING; take_off_readers()
		:: else
		fi;
#else
		if
		:: gen == mine && (flags & F_CLOSING) -> flags = flags & ~F_CLOSING; take_off_readers()
		:: else
		fi;
#endif
		unlock()
	fi
}

/* src/io/fd.c leave, src/io/fd_wait.c fd_pass_on */
inline leave()
{
	atomic { refs--; word = flags; left = refs }
	if
	:: (word & F_CLOSED) && left == 0 -> finish_close(0)
	:: (word & F_CLOSED) && left == 1 && (word & F_WAITED) ->
		lock();
		take_off_writers();
		unlock()
	:: else
	fi;
	word = 0; left = 0; mine = 0
}

/* src/io/fd.c fd_enter, closed_or_next */
inline enter(me, ok)
{
	do
	:: atomic { refs++; word = flags; ok = (word == 0); users = (ok && me < CLOSER -> users + 1 : users) }
		if
		:: ok -> break
		:: else
		fi;
		leave();
		lock();
		word = flags;
		if
		:: word & F_CLOSING -> wait_reading(me)
		:: else -> unlock()
		fi;
		if
		:: word & F_CLOSED -> break		/* -EBADF */
		:: else
		fi
	od;
	word = 0
}

active proctype reader()
{
	byte i, word, left, mine, target, s, born;
	bool ok;

	enter(READER, ok);
	if
	:: ok ->
		born = gen;
		do
		:: s = seq;			/* src/io/fd.h fd_seq */
			if
			:: data || file == 0 -> break
			:: else
			fi;
			/* src/io/fd_wait.c fd_wait, may_wait */
#ifdef LOOK_EARLY
			if
			:: gen != born || (flags & F_CLOSED) -> break
			:: else
			fi;
			lock();
#else
			lock();
			if
			:: gen != born || (flags & F_CLOSED) -> unlock(); break
			:: else
			fi;
#endif
#ifndef NO_SEQ
			if
			:: seq != s -> unlock()
			:: else -> wait_reading(READER)
			fi
#else
			wait_reading(READER)
#endif
		od;
		users--;
		leave()
	:: else
	fi
}

active proctype caller()
{
	byte i, word, left, mine, target;
	bool ok;

	enter(CALLER, ok);
	if
	:: ok -> users--; leave()
	:: else
	fi
}

/* src/io/fd.c goro_close */
active [2] proctype closer()
{
	byte me = _pid, i, word, left, mine, target;
	bool ok;

	edge != UNKNOWN;
	if
	:: me == CLOSER && file == 1
	:: me == CLOSER && closed[1] == 1 -> goto out
	:: me != CLOSER && made
	:: me != CLOSER && (no_next || edge)
	:: edge -> goto out
	fi;
	atomic {
		if
		:: closed[1] == 0 && flags == 0 || made -> refs++; target = file; ok = (flags == 0)
		:: else -> goto out			/* the program has seen it closed */
		fi
	}
	if
	:: !ok -> leave(); goto out
	:: else
	fi;
	/* src/io/fd.c mark_closed */
	lock();
	atomic {
		ok = (flags == 0);
		flags = (ok -> F_CLOSED | F_WAITED : flags)
	}
	if
	:: ok -> take_off_readers(); take_off_writers()
	:: else
	fi;
	unlock();
	if
	:: !ok -> leave(); goto out
	:: else
	fi;
	/* src/io/fd.c wait_for_users */
	lock();
#ifndef NO_USERS
	do
	:: refs > 1 && (flags & F_CLOSED) ->
		writes[me] = true;
		unlock();
		atomic { ready[me] -> ready[me] = false }
		lock()
	:: else -> break
	od;
#endif
	unlock();
	finish_close(1);
	if
	:: mine == 0 -> leave()
	:: else
	fi;
out:	skip
}

/* src/io/fd_wait.c events, fd_event */
active proctype poller()
{
	byte i;

	if
	:: edge = true;
		data = true;
		lock();
		seq++;
		take_off_readers();
		unlock()
	:: edge = false
	fi
}

/* The program opens the next file. src/io/fd.c fd_made */
active proctype opener()
{
	byte i;

	if
	:: atomic { file == 0 -> file = 2 }
		lock();
		take_off_readers();
		take_off_writers();
		atomic { flags = 0; gen++ }
		unlock();
		made = true
	:: no_next = true
	fi
}
