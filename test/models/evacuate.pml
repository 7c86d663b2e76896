/*
 * evacuate.pml - the page of a goroutine that waits is taken away and put back. See "Why nothing is
 * lost" and "Fork" in src/reclaim/evacuate.c.
 *
 * Proves: no write to the page is lost, whenever it comes; a page whose stack was given back stays
 * empty; a child made by fork finds the page, with a content that it had during the fork, whichever of
 * page and copies the kernel copies first. The waker writes WRITES times, wakes the goroutine by the
 * last write, and the goroutine ends; then its stack is given back. The server takes the page away if it
 * finds the goroutine waiting, TAKES times, and puts it back when the waker waits for it.
 *
 * Memory: the steps of the kernel (a page moved, put there, copied for a child) are one step each; turn
 * and held are sequentially consistent in the code as well.
 *
 * Left out: several pages and stacks, stretches, the pace; shrinking; pages that cannot be moved; how
 * the server sleeps; the system's lack of memory; what does not wait (FUTEX_LOCK_PI and others).
 *
 * Twins:
 *	COPY_FIRST	take_page shrinks the page before it moves it
 *	NO_KEEP		take_batch goes on without stack_keep_try
 *	NO_TURN		evacuate_fork_begin does not wait for the turn that the server is in
 *	FREE_COPIES	bring_back frees the copies although a fork is under way
 */
#define WRITES 3
#define TAKES 2
#define DEAD WRITES			/* the content of the page once the goroutine was woken */

bool present = true;			/* the page is in its place */
byte content;				/* what was written to it so far; 0: given back, too */
bool copied;				/* memo.copies */
byte copy;				/* what is in it */
bool back;				/* memo.back */
bool faults;				/* the waker waits for the page */
byte turn;
byte held;
bool keep;				/* stack_keep_try: the server has it */
bool given_back;
byte written;				/* the last write */
bool over;

/* src/reclaim/evacuate.c evacuate_turn_begin, evacuate_turn_end */
inline turn_begin(free) { turn = (turn + 1) % 4; free = (held == 0) }
inline turn_end() { turn = (turn + 1) % 4 }

/* src/reclaim/evacuate_serve.c on_fault, bring_back, evacuate_copies_free */
inline serve()
{
	turn_begin(free);
	if
	:: copied && !back ->
		atomic { assert(!present); present = true; content = copy }
		back = true;
#ifndef FREE_COPIES
		if
		:: free -> copied = false; back = false
		:: else
		fi
#else
		copied = false; back = false
#endif
	:: else
	fi;
	faults = false;
	free = false;
	turn_end()
}

active proctype server()
{
	byte n, staged;
	bool free;

	do
	:: faults -> serve()
	:: n < TAKES && !faults ->
		n++;
		/* src/reclaim/evacuate_take.c take_batch */
		turn_begin(free);
#ifndef NO_KEEP
		atomic { free = (free && !given_back && !keep); keep = (free -> true : keep) }	/* stack_keep_try */
#endif
		if
		:: free && !copied && present ->
			/* src/reclaim/evacuate_take.c take_page */
#ifdef COPY_FIRST
			staged = content;
			present = false;
#else
			atomic { staged = content; present = false }
#endif
			if
			:: staged != DEAD -> copy = staged; copied = true	/* stamp_peek: it waits */
			:: else -> atomic { content = staged; present = true }	/* put_back */
			fi
		:: else
		fi;
#ifndef NO_KEEP
		if
		:: free -> keep = false
		:: else
		fi;
#endif
		staged = 0; free = false;
		turn_end()
	:: n < TAKES && back ->
		/* src/reclaim/evacuate.c forget_kept_back */
		turn_begin(free);
		if
		:: free && back -> copied = false; back = false
		:: else
		fi;
		free = false;
		turn_end()
	:: over && !faults -> break
	od
}

active proctype waker()
{
	do
	:: written < WRITES ->
		/* A write: the thread waits as long as the page is missing. */
		do
		:: atomic { present -> assert(content == written); written++; content = written }; break
		:: atomic { !present && !faults -> faults = true }; !faults || present
		od
	:: else -> break
	od;
	/* It has ended. src/stack/stack.c stack_give_back, which waits for the server */
#ifdef NO_KEEP
	given_back = true;
#else
	atomic { !keep -> given_back = true }
#endif
	atomic { assert(present); content = 0 };	/* it is not away */
	over = true
}

/* fork: the kernel copies the page and the rest of the memory one after the other. */
active proctype forks()
{
	bool child_present, child_copied;
	byte child_content, child_copy, before, t;

	/* src/reclaim/evacuate.c evacuate_fork_begin */
	held++;
#ifndef NO_TURN
	t = turn;
	!(t & 1) || turn != t;
#endif
	before = written;
	if
	:: given_back -> goto out
	:: else
	fi;
	if
	:: atomic { child_present = present; child_content = content };
		atomic { child_copied = copied; child_copy = copy }
	:: atomic { child_copied = copied; child_copy = copy };
		atomic { child_present = present; child_content = content }
	fi;
	/* src/reclaim/evacuate.c evacuate_forked, in the child */
	if
	:: !child_present && child_copied -> child_present = true; child_content = child_copy
	:: else
	fi;
	assert(given_back || (child_present && child_content >= before));
out:	held--
}

init
{
	over;
	assert(present && content == 0)
}
