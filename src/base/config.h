/*
 * config.h - every tunable, once, with its unit in its name and its reason.
 */
#ifndef GORO_CONFIG_H
#define GORO_CONFIG_H

#define GORO_VERSION "0.1.0"

/* Slots of each of a P's two queues. Go's number: long enough that overflow to
 * the global queue is rare, short enough that half of it moves in a microsecond.
 * Tests build with 4, to live at the edges. A power of two, at most 32768. */
#ifndef GORO_RUNQ_CAP
#define GORO_RUNQ_CAP 256
#endif

/* A P looks this often where its usual order would look last: at the global
 * queue, at the oldest woken and at the oldest started, each once in a period.
 * 61 as in Go: prime, so that it does not beat with the program's own periods. */
#define FAIR_PERIOD_PICKS 61

/* .. but at the oldest started at most this often: each such pick opens another
 * subtree (skynet: 319 ms with a pick every 61, 83 ms with one in 5 ms). */
#define OLDEST_STARTED_NS 5000000

/* Goroutine ids a P takes at a time from the shared counter: the first time, so that the
 * ids of a small program are small, and then twice as many each time, up to the second. The counter's
 * line has to come from another CPU: with 16 for good that was 3 ns of each goroutine of fib. */
#define ID_BATCH     16
#define ID_BATCH_MAX 256

/* Dead goroutines a P keeps for itself; the older half goes to the shared pool
 * above this. */
#define P_GFREE_MAX 128

#define GOMAXPROCS_MAX 4096

/* Idle threads, or stopped ones, among which one that slept on this CPU is looked for. */
#define NEAR_MAX 8

/* A program that is over within this has none of the threads that watch and make others. */
#define RUN_SHORT_NS 200000

/* OS threads, Go's debug.SetMaxThreads default. */
#define THREADS_MAX 10000

/* A thread with nothing to do looks around this long before it sleeps: about
 * what waking it again would cost (futex round trip over two CPUs: 39 us). */
#define SPIN_BEFORE_SLEEP_NS 30000

/* A thief takes what would wait for longer than this where it is: a quarter of what
 * waking a thread costs. With 30 us fib on two Ps takes a third longer. */
#define STEAL_AFTER_NS 10000
/* .. and from so many without watching them first, if it has of late. */
#define STEAL_MANY     32
/* .. and whatever there is from a P at which somebody waited at half of the looks,
 * and there were so many, for this long. */
#define STEAL_LOADED_NS     1000000
#define STEAL_LOADED_LOOKS  8
/* .. on trial for this long, or so long at least. The next time after half as long if it was
 * for something, after twice as long if it was not, within these. */
#define STEAL_TRIAL_NS      250000
#define STEAL_TRIAL_MIN_NS  50000
#define STEAL_LOADED_MIN_NS 125000
#define STEAL_LOADED_MAX_NS 64000000
/* While others get through their work quickly, a thief looks this often: about
 * what waking it takes. */
#define DOZE_NS 50000
/* .. also when they seem not to move, for this long, if it was woken for nothing so shortly
 * before. */
#define DOZE_IN_VAIN_NS 200000

/* Others who have neither work nor switched for this long are not about to have any. */
#define SPIN_QUIET_NS 5000

/* Where so many timers are, and so many of them due within this time of the first, an
 * idle thread sleeps until the end of it and takes them together: the first is late by
 * so much. */
#define TIMERS_MANY    64
#define TIMERS_DENSE   8
#define TIMER_SLACK_NS 170000
/* If so many such sleeps, less half of them for one that does not, come at a beat, the clock is
 * set ahead for the next: beat.c. */
#define BEAT_STEADY     8
#define BEAT_STEADY_MAX 32
/* .. and sysmon looks this often whether they are run at all. */
#define SYSMON_DENSE_NS 1000000

/* The stack of a thread of ours runs the scheduler loop and nothing of the program's. */
#define M_STACK_BYTES (256 << 10)

/* An idle thread beyond those the Ps need ends after this long. */
#define IDLE_THREAD_END_NS (5 * 1000000000LL)

/* sysmon: shortest and longest tick, and how many quiet ticks before the tick
 * starts to double. Go's figures. */
#define SYSMON_TICK_MIN_NS 20000
#define SYSMON_TICK_MAX_NS 10000000
#define SYSMON_QUIET_TICKS 50
/* While nothing runs, it looks so long after the keeper was to wake: who then runs for less
 * than the shortest slice does not concern it. */
#define SYSMON_ALARM_NS    1000000
/* The Ps are brisk if they switch more often than once in so long, all together, over so long. */
#define BRISK_EACH_NS      20000
#define SYSMON_PACE_NS     500000
/* For so long after the keeper was to wake it is left to come; 25 to 100 us are usual. */
#define SYSMON_KEEPER_NS   200000
/* It rests for so many times as long as it was awake; beyond this, as it had a CPU. */
#define SYSMON_REST        2
#define SYSMON_REST_MAX_NS 100000

/* Its share of what the process uses, where CPUs are short: one in so many at the most. Weighed
 * that often, if it uses one in so many of a CPU or more; CPUs are short if so many threads for
 * each want one. */
#define SYSMON_SHARE       8
#define SYSMON_WEIGH_NS    10000000
#define SYSMON_WEIGH_LEAST 400
#define SYSMON_CROWD       2

/* It watches the poller while it sleeps for at least so long, or nobody else has come to. */
#define SYSMON_WATCH_NS    250000
/* .. and moves to another CPU at most so often. */
#define SYSMON_MOVE_NS     10000000

/* How long a goroutine runs before it is stopped: when only others like it wait,
 * and when somebody does who was just started or woken. */
#define SLICE_NS       10000000
#define SLICE_SHORT_NS 1000000
/* Who has had no CPU for so many of these, where CPUs are short, is stopped after all. */
#define LACKS_CPU_SLICES 4
/* A slice with so little left, or a tenth of it, is over: waking once more for that
 * costs more. */
#define SLICE_NEARLY_NS 100000

/* In the global queue, goroutines that were just started or woken, or come back from
 * a blocking call, go before those that have had their slice, but at most so many
 * in a row. */
#define FRESH_ROW 16

/* A thread that does not answer the signal for this long waits for a CPU itself, or
 * blocks the signal: its P is taken as if it slept. */
#define UNANSWERED_NS 200000

/* The kernel's time slice for sysmon, where it can be told: shorter than its own
 * (1.4 ms with 2 CPUs), so that sysmon gets a CPU soon when it wakes. (For all of
 * our threads it made no difference that could be measured, and what the program
 * starts would inherit it.) */
#define SYSMON_KERNEL_SLICE_NS 100000

/* So many stopped goroutines a P are many: who has not begun then waits for a whole
 * slice. */
#define STOPPED_MANY 2

/* While somebody waits for a P, it is looked at this often; for QUICK_LOOKS looks
 * after a P was taken from a sleeping thread, more often: where one thread waits
 * for a lock others soon will. */
#define LOOK_NS      1000000
#define LOOK_SOON_NS 50000
#define QUICK_LOOKS  8
/* .. and so long after a goroutine was asked to give way: who runs next may block at
 * once, on a lock that the former one holds. */
#define LOOK_AFTER_NS 50000
/* .. and one that was stopped and goes on is looked at so soon: a lock that it wanted
 * then it wants at once. */
#define LOOK_EARLY_NS 20000
/* Who has used up so many slices and was never seen asleep is left alone until its slice
 * is over: a look costs a timer and two switches, 20 us here. Its thread gets a kernel slice
 * of this length, so that those that wake, of any program, interrupt it more readily. */
#define STEADY_SLICES          3
#define STEADY_KERNEL_SLICE_NS 20000000

/* Events taken from the poller at a time. With fewer than Go's 128 the first goroutine
 * waits for less of what is done for all of them (fd_batch.c). */
#define NETPOLL_BATCH 64
/* While Ps are busy the poller is looked at at least this often, if there is
 * anything. */
#define NETPOLL_LOAD_NS 1000000
/* .. but a P that has just begun a slice gets so long to come to it by itself. */
#define NETPOLL_GRACE_NS 50000
/* A poller that a running P has looked at this recently needs nobody to wait
 * there, nor another to look; the keeper looks again whether that holds, at growing
 * intervals. Longer than it takes to try first a few times (fd_guess.c), 50 us. */
#define NETPOLL_ATTENDED_NS 100000
#define NETPOLL_RECHECK_MAX_NS 1000000

/* Writes that are put off (fd_post.c): of so many bytes at the most, so many at a time .. */
#define POST_BYTES_MAX 2048
#define POST_MAX       (GORO_RUNQ_CAP < 32 ? GORO_RUNQ_CAP : 32)
/* .. if so many others are about to run, whose turns were not longer than this of late. */
#define POST_LEAST     3
#define POST_TURN_NS   20000
/* It is time after this, where there is an occasion to look at the clock; and it is late after
 * this, and sysmon sees to it, who looks so often. */
#define POST_WAIT_NS   50000
#define POST_LATE_NS   200000
#define POST_LOOK_NS   1000000
/* When some were late no more are put off for a while: for twice as long, up to this, if it had
 * not gone well for so long before. */
#define POST_PAUSE_MIN_NS 1000000
#define POST_PAUSE_MAX_NS 1000000000
#define POST_WELL_NS      16000000

/* An announced call may take this long before it costs the P. */
#define SYSCALL_GRACE_NS 20000
/* A thread that used less CPU time than this between two looks may be asleep. */
#define CLOCK_STANDS_NS 2000
/* A thread that lost its P may compute for this long before it is stopped. */
#define CHASE_AFTER_NS 50000
/* .. and so long while it is about to get a lock, and a P with it. */
#define CHASE_HEIR_NS  1000000
/* There may be many such threads: so much time for each of them between two looks. */
#define CHASE_EACH_NS  5000
/* A goroutine found inside libc gets so many more tries to come out of it before it is
 * stopped there, the first two so far apart and the others twice as far each: 1.6 ms in
 * all. (One that is hardly ever elsewhere is interrupted by each for nothing.) */
#define PUT_OFF_MAX 6
#define PUT_OFF_NS  50000

/* A goroutine that sleeps on a lock so soon after its slice began probably does so
 * because of the one that was stopped before it. See convoy.c. */
#define CONVOY_SOON_NS 300000
/* Looks, LOOK_SOON_NS apart, at those who compete for a lock before they are left to
 * themselves. */
#define CONVOY_LOOKS 40
/* How often slices are doubled at most. */
#define CONVOY_DOUBLINGS 4
/* How far a goroutine is looked for in the global queue. */
#define GLOBQ_SEARCH_MAX 64

/* How far apart, at the least, goroutines are timed from ready to running on a
 * P, on average: two looks at the clock (50 ns) are then 1/400 of the time. */
#define LATENCY_SAMPLE_NS 20000

/* A mutex that is held: rounds of looking at it before sleeping, and pauses in a
 * round, Go's figures (two microseconds in all, a tenth of what waking a thread
 * costs); and how long a sleeper may lose to others before the mutex is handed to
 * it. See mutex.c. */
#define MUTEX_SPIN_ROUNDS 4
#define MUTEX_SPIN_PAUSES 30
#define MUTEX_STARVING_NS 1000000

/* How often sysmon looks for a changed CPU quota, if something runs when it looks, and if
 * nothing does: three system calls. */
#define QUOTA_CHECK_NS      1000000000LL
#define QUOTA_CHECK_IDLE_NS (4 * QUOTA_CHECK_NS)

/* How long a stack must have lain unused in the shared pool to be given back; and where nothing
 * has run for a while. */
#define STACK_COLD_NS      1000000000LL
#define STACK_COLD_IDLE_NS 200000000LL
/* Stacks given back at a time; how long it would take for all that are left at the pace of
 * the moment, while the program runs; and how many times the CPU time that a batch took is
 * waited at the least before the next: a hundredth of a CPU at most, as with Go's. */
#define STACK_RELEASE_BATCH 64
#define SCAVENGE_ALL_NS     10000000000LL
#define SCAVENGE_REST       99
/* .. all of them, when nothing has run for this long. */
#define SCAVENGE_IDLE_NS    20000000

#define STACK_DEFAULT_BYTES (256 << 10)
#define STACK_MIN_BYTES     (16 << 10)
#define STACK_MAX_BYTES     (1 << 30)
/* The runtime's own goroutines, the debug server's above all: whatever GORO_STACK says. */
#define INTERNAL_STACK_BYTES STACK_DEFAULT_BYTES
/* Address space taken from the kernel at a time, where stacks are not larger. */
#define STACK_REGION_BYTES  (1LL << 30)
/* Valgrind warns of a mapping above 256 MiB. */
#define STACK_REGION_BYTES_VALGRIND (128LL << 20)
/* Stacks guarded at a time when a region is carved. */
#define STACK_CARVE_BATCH   128
/* .. of which the first is so many times halved. */
#define STACK_CARVE_DOUBLINGS 4
/* Batches of stacks that are prepared ahead, at most: 2 MiB. */
#define STACK_AHEAD_MAX     4

/* Goroutines that wait are looked at this often; one that waits since the last look may
 * have its stack evacuated. See evacuate.c. */
#define EVACUATE_LOOK_NS    2000000000LL
/* .. where so many are alive that it is worth a thread. */
#define EVACUATE_MIN_ALIVE  2048
/* Stacks whose faults are watched for together: few enough that those who run meet few
 * others, and so many that a million goroutines make 8,000 mappings of 65,530. */
#define EVACUATE_STRETCH       128
#define EVACUATE_STRETCHES_MAX 8192
/* It is done where one in so many of them can be evacuated. */
#define EVACUATE_SHARE      4
/* Stacks evacuated between two looks for somebody who waits for one. */
#define EVACUATE_BATCH      8
/* What a page must shrink to at the least, and pages of a stack at the most. */
#define EVACUATE_WORTH_BYTES 2048
#define EVACUATE_PAGES_MAX  16
/* Rest, in times of the work: 5 % of a CPU, or 20 % when nothing else runs. */
#define EVACUATE_REST       19
#define EVACUATE_REST_IDLE  4
/* Where so many come back within this time all do: one that is waited for takes 20 to 50 us,
 * one of many 4. */
#define EVACUATE_BURST      4
#define EVACUATE_BURST_NS   10000000
/* Who comes back so soon after another may not be the last. */
#define EVACUATE_SOON_NS    200000
/* Where so many new pages are needed from one look to the next, nothing is evacuated for a
 * while: each takes ten times as long as without. */
#define EVACUATE_FILLS_MAX  32
/* How often the time that a stack must have been at rest doubles, if it comes back soon. */
#define EVACUATE_DOUBLINGS  6
/* If the system has no memory for a page that is to come back, it is asked again this often
 * at this interval: for 10 seconds. Then the process ends. */
#define EVACUATE_PUT_TRIES    100000
#define EVACUATE_PUT_AGAIN_NS 100000
/* How often sysmon says that the program is alive. */
#define EVACUATE_NOTICE_NS  100000000

/* io_uring: operations that may be waiting to be taken by the kernel, and those that
 * may be under way. Powers of two; 20 KiB and 64 KiB of memory. The kernel's thread
 * sleeps after so long without work. */
#define URING_SQ_ENTRIES 256
#define URING_CQ_ENTRIES 4096
#define URING_IDLE_MS    1

/* Blocking calls on files at a time: so many where there is io_uring for the rest, and
 * where there is not: more than any disk can use, and threads that any system can
 * bear. One read after the other takes 70 us by a blocking call and 200 to 300 by the
 * ring, whose thread has to be woken; a hundred at once take 50 and 20 us each. */
#define FILE_CALLS_FEW 8
#define FILE_CALLS_MAX 128

/* Threads that look names up at once, Go's number: enough that name servers which
 * do not answer do not hold up those that do, and few enough for any system. One
 * with nothing to do ends after this long. */
#define LOOKUPS_MAX    500
#define LOOKUP_IDLE_NS (5 * 1000000000LL)

/* goro_dial, Go's figures: what an address gets at the least of the time there is;
 * how long the second kind of addresses waits for the first. See net.c. */
#define DIAL_SHARE_MIN_NS (2 * 1000000000LL)
#define DIAL_FALLBACK_NS  300000000

/* Connections that nobody uses: a probe after so long, and again after as long, and
 * the end after so many. Go's figures. */
#define TCP_KEEPALIVE_S      15
#define TCP_KEEPALIVE_PROBES 9

/* Signals that a channel of goro_signal_notify holds for who is slow to receive
 * them: all that there are, twice. */
#define SIGNAL_CHAN_CAP 128

/* The signal that preempts, Go's choice: libc does not use it, debuggers pass it
 * on, and programs must expect it spuriously anyway. */
#define SIG_PREEMPT SIGURG

/* The execution trace. A thread's buffer is what the format allows a batch at most, Go's
 * number. So many wait for the writer at most: 128 MiB, a second of the busiest
 * program; one with ten million goroutines needs as much to begin with. */
#define TRACE_BUF_BYTES (64 << 10)
#define TRACE_QUEUE_MAX 2048
/* How long a generation lasts, which is what is lost if the process is killed. Go's. */
#define TRACE_GENERATION_NS 1000000000LL
/* Strings are cut to this, and no more frames than so many are told, of which the format
 * allows twice as many. */
#define TRACE_STRING_MAX 1024
#define TRACE_FRAMES_MAX 64
/* What the strings or the stacks of a generation may take. */
#define TRACE_TABLE_BYTES (64 << 20)

/* Of many who wait for one wait group, so many are fetched at once: as many misses as a CPU has
 * under way, about. */
#define WAITED_AHEAD 8

#define CACHE_LINE 64

/* Where in their pages Ps and Ms lie. The tops of stacks, with their Gs, are in the bytes from
 * 0x700 to 0xec0 (stack.c); what a switch touches of a P is in its first 0x110, and from 0x940
 * on, and of an M in its first 0x70. */
#define P_PAGE_OFFSET 0x580
#define M_PAGE_OFFSET 0x100

#endif
