/*
 * memory.h - the memory of C11 in Promela, for the models that depend on its orders.
 *
 * A model defines THREADS, LOCS, DEPTH and LOCKS before it includes this.
 *
 * Each location keeps the history of its values. A thread has, for each location, the
 * oldest value that it may still read (seen). A relaxed load reads that one or any newer
 * one; so a load may be late, and a store and a later load of another location may change
 * places, as on every processor, and two stores or two loads as well, as on aarch64. A
 * release store keeps with its value what its thread has seen; an acquire load of that
 * value takes it over. A locked instruction reads the newest value, acquires and
 * releases. A seqcst fence takes over what all threads had seen at their last fence, and
 * adds what its own has. A membarrier is such a fence on each thread in turn, wherever
 * that thread is.
 *
 * This is weaker than x86, where each load acquires and each store releases. It is
 * stronger than C11 in three places: no load reads a value that is stored later (no
 * compiler or processor does this here: the loads are followed by branches), stores to
 * one location get their order when they are executed, and a CAS that fails reads the
 * newest value.
 *
 * FRESH: there are no histories, every load reads the newest value, for searches that
 * would become too large.
 */
typedef view { byte oldest[LOCS] };
typedef message { short value; view with };
typedef history { message at[DEPTH]; byte last };

history mem[LOCS];
view seen[THREADS];
view fenced;			/* what all threads had seen at their last fences */
#if LOCKS > 0
bool held[LOCKS];
view kept[LOCKS];		/* what the last holder of the lock had seen */
#endif

/* What the inlines below work with: in each process. Always 0 between two steps. */
#define MEMORY byte k_, j_; short n_

#define MAX_OF(a, b) ((a) > (b) -> (a) : (b))
#define NEWEST(l) mem[l].at[mem[l].last].value

#define join(to, from)                                                               \
	j_ = 0;                                                                       \
	do                                                                            \
	:: j_ < LOCS ->                                                               \
		to.oldest[j_] = MAX_OF(to.oldest[j_], from.oldest[j_]);               \
		j_++                                                                  \
	:: else -> break                                                              \
	od;                                                                           \
	j_ = 0

inline pick_value(t, l)
{
#ifdef FRESH
	k_ = mem[l].last
#else
	k_ = seen[t].oldest[l];
	do
	:: k_ < mem[l].last -> k_++
	:: break
	od
#endif
}

inline load_relaxed(t, l, to)
{
	atomic {
		pick_value(t, l);
		seen[t].oldest[l] = k_;
		to = mem[l].at[k_].value;
		k_ = 0
	}
}

inline load_acquire(t, l, to)
{
	atomic {
		pick_value(t, l);
		seen[t].oldest[l] = k_;
		d_step {
			to = mem[l].at[k_].value;
			join(seen[t], mem[l].at[k_].with);
			k_ = 0
		}
	}
}

inline put_value(t, l, v)
{
#ifndef FRESH
	mem[l].last++;
	assert(mem[l].last < DEPTH);
#endif
	mem[l].at[mem[l].last].value = v;
	seen[t].oldest[l] = mem[l].last
}

inline store_relaxed(t, l, v)
{
	d_step { put_value(t, l, v) }
}

inline store_release(t, l, v)
{
	d_step {
		put_value(t, l, v);
		join(mem[l].at[mem[l].last].with, seen[t])
	}
}

/* acqrel: the newest value becomes v. */
inline change_newest(t, l, v)
{
	join(seen[t], mem[l].at[mem[l].last].with);
	put_value(t, l, v);
	join(mem[l].at[mem[l].last].with, seen[t])
}

/* As fetch_add_acqrel. */
inline add(t, l, n)
{
	d_step { n_ = NEWEST(l) + (n); change_newest(t, l, n_); n_ = 0 }
}

/* acqrel. ok: it was old, and is v now; else old is what was found. */
inline cas(t, l, old, v, ok)
{
	d_step {
		if
		:: NEWEST(l) == old -> change_newest(t, l, v); ok = true
		:: else ->
			join(seen[t], mem[l].at[mem[l].last].with);
			seen[t].oldest[l] = mem[l].last;
			old = NEWEST(l);
			ok = false
		fi
	}
}

inline fence_step(t)
{
	join(seen[t], fenced);
	join(fenced, seen[t])
}

inline fence(t)
{
	d_step { fence_step(t) }
}

/* Every other thread passes a fence, in any order (here: by number, at any moment of
 * each). */
inline membarrier(t)
{
	fence(t);
	do
	:: k_ < THREADS -> d_step { fence_step(k_); k_++ }
	:: else -> k_ = 0; break
	od;
	fence(t)
}

#if LOCKS > 0
inline lock_acquire(t, n)
{
	atomic {
		!held[n] -> d_step { held[n] = true; join(seen[t], kept[n]) }
	}
}

inline lock_release(t, n)
{
	d_step { join(kept[n], seen[t]); held[n] = false }
}
#endif
