/*
 * eintr_test.c - calls that the kernel never restarts after a signal sleep to
 * their end beside busy goroutines, as if there were no preemption.
 *
 * One test a call. Each is asleep for 200 ms on the only P while goroutines that
 * never call anything want it: the P must go on with them, and the call must
 * return what it would return in a program of one thread. Then the preemption
 * signal is sent to the sleeping thread on purpose, as happens when a thread falls
 * asleep between sysmon's look and the signal: the call must not notice either.
 */
#include <goro.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <threads.h>

#include "platform/atomic.h"
#include "await.h"
#include "test.h"

#define ASLEEP_NS  (200 * GORO_MILLISECOND)
#define POKED_NS   (100 * GORO_MILLISECOND)
#define HOGS       2
#define POKES      3

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * GORO_SECOND + t.tv_nsec;
}

static struct timespec span(int64_t ns)
{
	return (struct timespec){ ns / GORO_SECOND, ns % GORO_SECOND };
}

static struct timespec in(clockid_t clock, int64_t ns)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return span(t.tv_sec * GORO_SECOND + t.tv_nsec + ns);
}

/* ------------------------------------------------------------ the machinery */

static struct { _Alignas(64) uint64_t rounds; } hogs[HOGS];

static void hog(int i)
{
	for (;;)
		store_relaxed(&hogs[i].rounds, hogs[i].rounds + 1);
}

static uint64_t rounds(void)
{
	uint64_t n = 0;

	for (int i = 0; i < HOGS; i++)
		n += load_relaxed(&hogs[i].rounds);
	return n;
}

static void start_hogs(void)
{
	goro_gomaxprocs(1);
	for (int i = 0; i < HOGS; i++)
		go(hog, i);
	for (int i = 0; i < HOGS; i++)
		AWAIT(load_relaxed(&hogs[i].rounds) > 0);
}

static int sleeper;	/* its tid */

static bool is_asleep(int tid)
{
	char path[64], first = 'r';
	int fd;

	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, &first, 1) != 1)
		first = 'r';
	close(fd);
	return first != 'r';
}

/* Interrupts the sleeper with the preemption signal, as sysmon might. */
static void *poke(void *arg)
{
	struct timespec pause = span(POKED_NS / 5);

	(void)arg;
	for (int i = 0; i < POKES; i++) {
		nanosleep(&pause, NULL);
		if (is_asleep(sleeper))
			syscall(SYS_tgkill, getpid(), sleeper, SIGURG);
	}
	return NULL;
}

/* On another architecture such a call cannot be restarted; and ThreadSanitizer
 * holds signals back until the call returns. */
#if defined(__x86_64__)
#define CAN_POKE (!TOOL_TSAN)
#else
#define CAN_POKE false
#endif

/* call(ns): a call that sleeps for ns and checks what it returned. */
static void sleep_poked(void (*call)(int64_t))
{
	pthread_t thread;

	if (!CAN_POKE)
		return;
	sleeper = (int)syscall(SYS_gettid);
	CHECK(pthread_create(&thread, NULL, poke, NULL) == 0);
	call(POKED_NS);
	pthread_join(thread, NULL);
}

static void sleep_beside_hogs(void (*call)(int64_t), int64_t ns)
{
	int64_t start, took;
	uint64_t before;
	int stood = 0;		/* times that no CPU was free for the others in time */

	start_hogs();
	do {
		before = rounds();
		start = now();
		call(ns);
		took = now() - start;
		if (took < ns - ns / 50)
			FAIL("returned after %lld us", (long long)took / 1000);
		if (took > ns + seconds(10))
			FAIL("returned only after %lld ms", (long long)took / 1000000);
	} while (rounds() == before && ++stood < 10);
	if (stood == 10)
		FAIL("the others stood still meanwhile");
}

#define CALL_TEST(name)                                       \
	static void call_##name(int64_t ns);                  \
	GO_TEST(name)                                         \
	{                                                     \
		sleep_beside_hogs(call_##name, ASLEEP_NS);    \
		sleep_poked(call_##name);                     \
	}                                                     \
	static void call_##name(int64_t ns)

#define CHECK_ERRNO(call, e)                                                      \
	do {                                                                      \
		long r_ = (long)(call);                                           \
		int e_ = errno;                                                   \
		if (r_ != -1 || e_ != (e))                                        \
			FAIL("%s: %ld, errno %d, not -1, %d", #call, r_, e_, (e)); \
	} while (0)

#define CHECK_ZERO(call)                                                   \
	do {                                                               \
		long r_ = (long)(call);                                    \
		if (r_ != 0)                                               \
			FAIL("%s: %ld, errno %d", #call, r_, errno);       \
	} while (0)

/* ------------------------------------------------------------------- sleeps */

CALL_TEST(nanosleep_)
{
	struct timespec t = span(ns);

	CHECK_ZERO(nanosleep(&t, NULL));
}

CALL_TEST(clock_nanosleep_for)
{
	struct timespec t = span(ns);

	CHECK_ZERO(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL));
}

CALL_TEST(clock_nanosleep_until)
{
	struct timespec t = in(CLOCK_MONOTONIC, ns);

	CHECK_ZERO(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL));
}

CALL_TEST(usleep_)
{
	CHECK_ZERO(usleep((useconds_t)(ns / 1000)));
}

CALL_TEST(thrd_sleep_)
{
	struct timespec t = span(ns);

	CHECK_ZERO(thrd_sleep(&t, NULL));
}

static void call_sleep(int64_t ns)
{
	(void)ns;
	CHECK_ZERO(sleep(1));
}

GO_TEST(sleep_)
{
	sleep_beside_hogs(call_sleep, seconds(1));
	sleep_poked(call_sleep);
}

/* ------------------------------------------------- waiting for descriptors */

static int silent(void)
{
	int fd[2];

	CHECK(pipe(fd) == 0);
	return fd[0];	/* the other end stays open */
}

CALL_TEST(poll_)
{
	struct pollfd p = { .fd = silent(), .events = POLLIN };

	CHECK_ZERO(poll(&p, 1, (int)(ns / 1000000)));
}

CALL_TEST(ppoll_)
{
	struct pollfd p = { .fd = silent(), .events = POLLIN };
	struct timespec t = span(ns);
	sigset_t none;

	sigemptyset(&none);
	CHECK_ZERO(ppoll(&p, 1, &t, &none));
}

CALL_TEST(select_)
{
	struct timeval t = { 0, ns / 1000 };
	int fd = silent();
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	CHECK_ZERO(select(fd + 1, &set, NULL, NULL, &t));
}

CALL_TEST(pselect_)
{
	struct timespec t = span(ns);
	int fd = silent();
	sigset_t none;
	fd_set set;

	sigemptyset(&none);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	CHECK_ZERO(pselect(fd + 1, &set, NULL, NULL, &t, &none));
}

static int epoll_of(int fd)
{
	int ep = epoll_create1(0);
	struct epoll_event e = { .events = EPOLLIN };

	CHECK(ep >= 0 && epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) == 0);
	return ep;
}

CALL_TEST(epoll_wait_)
{
	struct epoll_event e;

	CHECK_ZERO(epoll_wait(epoll_of(silent()), &e, 1, (int)(ns / 1000000)));
}

CALL_TEST(epoll_pwait_)
{
	struct epoll_event e;
	sigset_t none;

	sigemptyset(&none);
	CHECK_ZERO(epoll_pwait(epoll_of(silent()), &e, 1, (int)(ns / 1000000), &none));
}

/* -------------------------------------------- sockets with a time limit */

static int socket_with_limit(int option, int64_t ns, int *other)
{
	struct timeval t = { 0, ns / 1000 };
	int fd[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
	CHECK(setsockopt(fd[0], SOL_SOCKET, option, &t, sizeof t) == 0);
	if (other)
		*other = fd[1];
	return fd[0];
}

CALL_TEST(recv_with_rcvtimeo)
{
	char c;

	CHECK_ERRNO(recv(socket_with_limit(SO_RCVTIMEO, ns, NULL), &c, 1, 0), EAGAIN);
}

CALL_TEST(read_with_rcvtimeo)
{
	char c;

	CHECK_ERRNO(read(socket_with_limit(SO_RCVTIMEO, ns, NULL), &c, 1), EAGAIN);
}

CALL_TEST(recvmsg_with_rcvtimeo)
{
	char c;
	struct iovec iov = { &c, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	CHECK_ERRNO(recvmsg(socket_with_limit(SO_RCVTIMEO, ns, NULL), &m, 0), EAGAIN);
}

/* Fills it up, so that the next byte would have to wait. */
static int full_socket(int64_t ns)
{
	static char block[1 << 16];
	int fd = socket_with_limit(SO_SNDTIMEO, ns, NULL);

	while (send(fd, block, sizeof block, MSG_DONTWAIT) > 0)
		;
	while (send(fd, block, 1, MSG_DONTWAIT) > 0)
		;
	return fd;
}

CALL_TEST(send_with_sndtimeo)
{
	CHECK_ERRNO(send(full_socket(ns), "x", 1, 0), EAGAIN);
}

CALL_TEST(write_with_sndtimeo)
{
	CHECK_ERRNO(write(full_socket(ns), "x", 1), EAGAIN);
}

CALL_TEST(sendmsg_with_sndtimeo)
{
	struct iovec iov = { (char[]){ 'x' }, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	CHECK_ERRNO(sendmsg(full_socket(ns), &m, 0), EAGAIN);
}

static int listener(struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	socklen_t n = sizeof *address;

	/* An empty address: the kernel chooses an abstract one. */
	CHECK(bind(fd, (struct sockaddr *)&(struct sockaddr_un){ .sun_family = AF_UNIX },
	           sizeof(sa_family_t)) == 0);
	CHECK(listen(fd, 0) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)address, &n) == 0);
	return fd;
}

CALL_TEST(accept_with_rcvtimeo)
{
	struct timeval t = { 0, ns / 1000 };
	struct sockaddr_un a = { 0 };
	int fd = listener(&a);

	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == 0);
	CHECK_ERRNO(accept(fd, NULL, NULL), EAGAIN);
}

/* The queue of those that nobody has accepted yet holds one. */
CALL_TEST(connect_with_sndtimeo)
{
	struct timeval t = { 0, ns / 1000 };
	struct sockaddr_un a = { 0 };
	int fd, first = socket(AF_UNIX, SOCK_STREAM, 0), second = socket(AF_UNIX, SOCK_STREAM, 0);
	socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 6);

	fd = listener(&a);
	CHECK(fd >= 0 && connect(first, (struct sockaddr *)&a, n) == 0);
	CHECK(setsockopt(second, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t) == 0);
	CHECK_ERRNO(connect(second, (struct sockaddr *)&a, n), EAGAIN);
}

/* -------------------------------------------------------- locks with a limit */

CALL_TEST(futex_with_timeout)
{
	struct timespec t = span(ns);
	uint32_t word = 0;

	CHECK_ERRNO(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0), ETIMEDOUT);
}

CALL_TEST(sem_timedwait_)
{
	struct timespec t = in(CLOCK_REALTIME, ns);
	sem_t s;

	sem_init(&s, 0, 0);
	CHECK_ERRNO(sem_timedwait(&s, &t), ETIMEDOUT);
}

CALL_TEST(pthread_mutex_timedlock_)
{
	struct timespec t = in(CLOCK_REALTIME, ns);
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&m);
	CHECK_EQ(pthread_mutex_timedlock(&m, &t), ETIMEDOUT);
	pthread_mutex_unlock(&m);
}

CALL_TEST(pthread_cond_timedwait_)
{
	struct timespec t = in(CLOCK_REALTIME, ns);
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	int r;

	pthread_mutex_lock(&m);
	do
		r = pthread_cond_timedwait(&c, &m, &t);
	while (r == 0);	/* it may wake for nothing */
	CHECK_EQ(r, ETIMEDOUT);
	pthread_mutex_unlock(&m);
}

/* ------------------------------------------------------------- System V IPC */

struct message {
	long type;
	char text[8];
};

/* Sends or does something else after a while, in a plain thread. */
struct later {
	pthread_t thread;
	int64_t ns;
	void (*fn)(void *);
	void *arg;
};

static void *do_later(void *arg)
{
	struct later *l = arg;
	struct timespec t = span(l->ns);

	nanosleep(&t, NULL);
	l->fn(l->arg);
	return NULL;
}

static void later_start(struct later *l, int64_t ns, void (*fn)(void *), void *arg)
{
	*l = (struct later){ .ns = ns, .fn = fn, .arg = arg };
	CHECK(pthread_create(&l->thread, NULL, do_later, l) == 0);
}

static void send_message(void *arg)
{
	struct message m = { 1, "hello" };

	CHECK(msgsnd(*(int *)arg, &m, sizeof m.text, 0) == 0);
}

CALL_TEST(msgrcv_)
{
	int q = msgget(IPC_PRIVATE, 0600);
	struct message m = { 0 };
	struct later l;

	CHECK(q >= 0);
	later_start(&l, ns, send_message, &q);
	CHECK_EQ(msgrcv(q, &m, sizeof m.text, 0, 0), sizeof m.text);
	CHECK_STR(m.text, "hello");
	pthread_join(l.thread, NULL);
	msgctl(q, IPC_RMID, NULL);
}

static void receive_message(void *arg)
{
	char buffer[sizeof(long) + 8192];

	CHECK(msgrcv(*(int *)arg, buffer, 8192, 0, 0) >= 0);
}

CALL_TEST(msgsnd_)
{
	int q = msgget(IPC_PRIVATE, 0600);
	char buffer[sizeof(long) + 8192] = { 1 };
	struct later l;

	CHECK(q >= 0);
	while (msgsnd(q, buffer, 8000, IPC_NOWAIT) == 0)
		;
	later_start(&l, ns, receive_message, &q);
	CHECK_ZERO(msgsnd(q, buffer, 8000, 0));
	pthread_join(l.thread, NULL);
	msgctl(q, IPC_RMID, NULL);
}

static void post_semaphore(void *arg)
{
	struct sembuf up = { 0, 1, 0 };

	CHECK(semop(*(int *)arg, &up, 1) == 0);
}

CALL_TEST(semop_)
{
	int s = semget(IPC_PRIVATE, 1, 0600);
	struct sembuf down = { 0, -1, 0 };
	struct later l;

	CHECK(s >= 0);
	later_start(&l, ns, post_semaphore, &s);
	CHECK_ZERO(semop(s, &down, 1));
	pthread_join(l.thread, NULL);
	semctl(s, 0, IPC_RMID);
}

CALL_TEST(semtimedop_)
{
	int s = semget(IPC_PRIVATE, 1, 0600);
	struct sembuf down = { 0, -1, 0 };
	struct timespec t = span(ns);

	CHECK(s >= 0);
	CHECK_ERRNO(semtimedop(s, &down, 1, &t), EAGAIN);
	semctl(s, 0, IPC_RMID);
}

CALL_TEST(mq_timedreceive_)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	struct timespec t = in(CLOCK_REALTIME, ns);
	char name[64], buffer[8];
	mqd_t q;

	snprintf(name, sizeof name, "/goro-eintr-%d", getpid());
	q = mq_open(name, O_RDONLY | O_CREAT | O_EXCL, 0600, &attr);
	if (q < 0)
		SKIP("no message queues here");
	mq_unlink(name);
	CHECK_ERRNO(mq_timedreceive(q, buffer, sizeof buffer, NULL, &t), ETIMEDOUT);
	mq_close(q);
}

/* ------------------------------------------------------- waiting for signals */

static int seen_signal;

static void on_usr1(int sig)
{
	store_relaxed(&seen_signal, sig);
}

static void send_usr1(void *arg)
{
	CHECK(syscall(SYS_tgkill, getpid(), *(int *)arg, SIGUSR1) == 0);
}

/* The goroutine stays on its thread: it makes no call of ours in between. */
static void start_usr1(struct later *l, int64_t ns, int *tid)
{
	store_relaxed(&seen_signal, 0);
	*tid = (int)syscall(SYS_gettid);
	later_start(l, ns, send_usr1, tid);
}

static int paused;

/* A signal that comes before the pause does not end it: so again and again. */
static void send_usr1_until_paused(void *arg)
{
	do {
		send_usr1(arg);
		usleep(50000);
	} while (!load_relaxed(&paused));
}

CALL_TEST(pause_)
{
	struct later l;
	int tid = (int)syscall(SYS_gettid);

	signal(SIGUSR1, on_usr1);
	store_relaxed(&paused, 0);
	later_start(&l, ns, send_usr1_until_paused, &tid);
	CHECK_ERRNO(pause(), EINTR);
	store_relaxed(&paused, 1);
	CHECK_EQ(load_relaxed(&seen_signal), SIGUSR1);
	pthread_join(l.thread, NULL);
}

CALL_TEST(sigsuspend_)
{
	struct later l;
	sigset_t block, old;
	int tid;

	signal(SIGUSR1, on_usr1);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &block, &old);
	sigdelset(&old, SIGUSR1);
	start_usr1(&l, ns, &tid);
	CHECK_ERRNO(sigsuspend(&old), EINTR);
	CHECK_EQ(load_relaxed(&seen_signal), SIGUSR1);
	pthread_join(l.thread, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void on_usr1_for_long(int sig)
{
	int64_t end = now() + 5 * GORO_MILLISECOND;

	while (now() < end)
		;
	store_relaxed(&seen_signal, sig);
}

/* The handler computes, so it is to be stopped, with all signals blocked. The preemption
 * signal comes when it has returned: the call was interrupted, but not by that. */
CALL_TEST(a_handler_that_blocks_all_signals)
{
	struct sigaction act = { .sa_handler = on_usr1_for_long };
	struct later l;
	sigset_t block, old;
	int tid;

	sigfillset(&act.sa_mask);
	CHECK_ZERO(sigaction(SIGUSR1, &act, NULL));
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &block, &old);
	sigdelset(&old, SIGUSR1);
	store_relaxed(&seen_signal, 0);
	start_usr1(&l, ns, &tid);
	CHECK_ERRNO(sigsuspend(&old), EINTR);
	CHECK_EQ(load_relaxed(&seen_signal), SIGUSR1);
	pthread_join(l.thread, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void block_usr1(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, set, NULL);
}

CALL_TEST(sigwaitinfo_)
{
	struct later l;
	siginfo_t info;
	sigset_t set;
	int tid;

	block_usr1(&set);
	start_usr1(&l, ns, &tid);
	CHECK_EQ(sigwaitinfo(&set, &info), SIGUSR1);
	pthread_join(l.thread, NULL);
}

CALL_TEST(sigwait_)
{
	struct later l;
	sigset_t set;
	int tid, sig = 0;

	block_usr1(&set);
	start_usr1(&l, ns, &tid);
	CHECK_ZERO(sigwait(&set, &sig));
	CHECK_EQ(sig, SIGUSR1);
	pthread_join(l.thread, NULL);
}

CALL_TEST(sigtimedwait_)
{
	struct timespec t = span(ns);
	siginfo_t info;
	sigset_t set;

	block_usr1(&set);
	CHECK_ERRNO(sigtimedwait(&set, &info, &t), EAGAIN);
}

CALL_TEST(signalfd_)
{
	struct signalfd_siginfo info;
	struct later l;
	sigset_t set;
	int tid, fd;

	block_usr1(&set);
	fd = signalfd(-1, &set, 0);
	start_usr1(&l, ns, &tid);
	CHECK_EQ(read(fd, &info, sizeof info), sizeof info);
	CHECK_EQ(info.ssi_signo, SIGUSR1);
	pthread_join(l.thread, NULL);
	close(fd);
}

/* --------------------------------------------------------------- transfers */

CALL_TEST(io_getevents_)
{
	aio_context_t ctx = 0;
	struct timespec t = span(ns);
	struct io_event e;

	if (syscall(SYS_io_setup, 1, &ctx) != 0)
		SKIP("no asynchronous I/O here");
	CHECK_ZERO(syscall(SYS_io_getevents, ctx, 1, 1, &e, &t));
	syscall(SYS_io_destroy, ctx);
}

CALL_TEST(timerfd_)
{
	struct itimerspec t = { .it_value = span(ns) };
	uint64_t expirations = 0;
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);

	CHECK(fd >= 0 && timerfd_settime(fd, 0, &t, NULL) == 0);
	CHECK_EQ(read(fd, &expirations, sizeof expirations), sizeof expirations);
	CHECK_EQ(expirations, 1);
	close(fd);
}

static void post_eventfd(void *arg)
{
	CHECK(eventfd_write(*(int *)arg, 5) == 0);
}

CALL_TEST(eventfd_)
{
	int fd = eventfd(0, 0);
	eventfd_t value = 0;
	struct later l;

	later_start(&l, ns, post_eventfd, &fd);
	CHECK_ZERO(eventfd_read(fd, &value));
	CHECK_EQ(value, 5);
	pthread_join(l.thread, NULL);
	close(fd);
}

static void unlock_file(void *arg)
{
	CHECK(flock(*(int *)arg, LOCK_UN) == 0);
}

CALL_TEST(flock_)
{
	char path[] = "/tmp/goro-eintr-XXXXXX";
	int fd = mkstemp(path), other = open(path, O_RDWR);
	struct later l;

	unlink(path);
	CHECK(fd >= 0 && other >= 0 && flock(fd, LOCK_EX) == 0);
	later_start(&l, ns, unlock_file, &fd);
	CHECK_ZERO(flock(other, LOCK_EX));
	pthread_join(l.thread, NULL);
	close(fd);
	close(other);
}

CALL_TEST(waitpid_)
{
	struct timespec t = span(ns);
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		nanosleep(&t, NULL);
		_exit(7);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(WEXITSTATUS(status), 7);
}

/* Much more than a pipe or a socket holds, to a reader that pauses in the middle. */
enum { TRANSFER = 4 << 20 };
static char transfer[TRANSFER];

struct reader {
	pthread_t thread;
	int fd;
	int64_t pause;
	size_t got;
};

static void *read_all(void *arg)
{
	static char buffer[1 << 16];
	struct reader *r = arg;
	struct timespec t = span(r->pause);

	nanosleep(&t, NULL);
	while (r->got < TRANSFER) {
		ssize_t n = read(r->fd, buffer, sizeof buffer);

		CHECK(n > 0);
		r->got += (size_t)n;
	}
	return NULL;
}

static void reader_start(struct reader *r, int fd, int64_t pause)
{
	*r = (struct reader){ .fd = fd, .pause = pause };
	CHECK(pthread_create(&r->thread, NULL, read_all, r) == 0);
}

/* A signal in the middle of such a call leaves a rest, where calls cannot be
 * restarted. */
static void give_all(int fd, ssize_t (*give)(int fd, const void *p, size_t n))
{
	size_t done = 0;

	do {
		ssize_t r = give(fd, transfer + done, TRANSFER - done);

		CHECK(r > 0);
		done += (size_t)r;
	} while (!CAN_POKE && done < TRANSFER);
	CHECK_EQ(done, TRANSFER);
}

static ssize_t send_plainly(int fd, const void *p, size_t n)
{
	return send(fd, p, n, 0);
}

CALL_TEST(large_write_to_a_pipe)
{
	struct reader r;
	int fd[2];

	CHECK(pipe(fd) == 0);
	reader_start(&r, fd[0], ns);
	give_all(fd[1], write);
	pthread_join(r.thread, NULL);
	close(fd[0]);
	close(fd[1]);
}

CALL_TEST(large_send_to_a_socket)
{
	struct reader r;
	int fd[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
	reader_start(&r, fd[0], ns);
	give_all(fd[1], send_plainly);
	pthread_join(r.thread, NULL);
	close(fd[0]);
	close(fd[1]);
}

static void send_rest(void *arg)
{
	CHECK(send(*(int *)arg, "world", 5, 0) == 5);
}

CALL_TEST(recv_of_all_that_was_asked_for)
{
	struct later l;
	char text[11] = "";
	int fd[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
	CHECK(send(fd[1], "hello", 5, 0) == 5);
	later_start(&l, ns, send_rest, &fd[1]);
	CHECK_EQ(recv(fd[0], text, 10, MSG_WAITALL), 10);
	CHECK_STR(text, "helloworld");
	pthread_join(l.thread, NULL);
	close(fd[0]);
	close(fd[1]);
}

/* ------------------------------------------------------------- many of them */

static void compute(int64_t ns)
{
	int64_t end = now() + ns;

	while (now() < end)
		;
}

static int64_t slept;

/* Sleeps and computes for lengths that drift against all periods of sysmon's, so
 * that its looks and signals come at every point of it. */
static void nap_on(int i, int64_t until, goro_waitgroup *wg)
{
	for (unsigned n = 0; now() < until; n++) {
		struct timespec t = span(20000 + (int64_t)(n * 7919 % 997) * 300);

		CHECK_ZERO(nanosleep(&t, NULL));
		fetch_add_relaxed(&slept, 1);
		compute(5000 + (int64_t)(n * 104729 % 1009 + (unsigned)i) * 150);
	}
	goro_waitgroup_done(wg);
}

GO_TEST(short_naps_between_short_computations)
{
	goro_waitgroup wg = { 0 };

	if (!CAN_POKE)
		SKIP("what falls asleep at the wrong moment fails with EINTR here");
	start_hogs();
	goro_waitgroup_add(&wg, 4);
	for (int i = 0; i < 4; i++)
		go(nap_on, i, now() + seconds(2), &wg);
	goro_waitgroup_wait(&wg);
	CHECK(slept > 40);
}
