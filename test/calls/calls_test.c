/*
 * calls_test.c - each call of the library goro-calls hands the processor over if it is
 * about to sleep, and only then, and is otherwise libc's.
 *
 * No runtime here: the two functions of goro that the library calls are this program's.
 * A call that sleeps is ended by another thread, which waits for goro_hand_over: a call
 * that does not hand over sleeps for ever.
 */
/* test: in parts */
#include <aio.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <termios.h>
#include <threads.h>
#include <time.h>

#include "platform/atomic.h"
#include "platform/tool.h"
#include "test.h"

/* ------------------------------------------------------ the runtime's part */

static int awaited;		/* what goro_is_awaited says */
static int handed_over;		/* calls of goro_hand_over */
static int asked;		/* calls of goro_is_awaited */
static sem_t handed;		/* posted by goro_hand_over */

bool goro_is_awaited(void);
void goro_hand_over(void);

bool goro_is_awaited(void)
{
	fetch_add_relaxed(&asked, 1);
	return load_relaxed(&awaited);
}

void goro_hand_over(void)
{
	fetch_add_relaxed(&handed_over, 1);
	/* The runtime changes no errno; whatever it does, the call does not show it. */
	errno = ENOTNAM;
	sem_post(&handed);
}

/* ------------------------------------------------- what calls are made with */

static struct {
	int in, out;		/* a pipe, empty */
	int full_out, full_in;	/* a pipe without room */
	int a, b;		/* sockets that are connected; nothing to read */
	int crowded;		/* a socket whose peer takes no more */
	int crowded_peer;
	int listener;		/* nobody connects to it yet */
	struct sockaddr_in addr;	/* of the listener */
	int fresh;		/* a socket that is not connected */
	int epoll;		/* on in */
	int file, other;	/* of one file, opened twice */
	int tty, tty_master;
	char fifo[64];
	pid_t child;		/* reads from child_waits until that is closed */
	int child_waits;
	sem_t sem;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool flag;		/* under mutex: the condition */
	mtx_t mtx;
	cnd_t cnd;
	pthread_barrier_t barrier;
	pthread_t thread;	/* ends with child_waits */
	thrd_t thrd;
	int thread_waits;
	mqd_t mq, mq_full;
	int msg, msg_full;
	int sems;
	struct aiocb aio;
	FILE *popened;
} o;

static char buf[65536];
static char sink[65536];	/* of the thread that ends sleeps */
static struct iovec vec = { buf, 1 };
static const struct timespec second = { 1, 0 }, moment = { 0, 1000000 };

static struct timespec in_an_hour(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_sec += 3600;
	return t;
}

static void make_files(void)
{
	char name[64];
	int fd;

	snprintf(name, sizeof name, "/tmp/goro-calls-%d", getpid());
	o.file = open(name, O_RDWR | O_CREAT, 0600);
	o.other = open(name, O_RDWR);
	CHECK(o.file >= 0 && o.other >= 0 && unlink(name) == 0);
	CHECK_EQ(write(o.file, "some bytes", 10), 10);
	CHECK_EQ(lseek(o.file, 0, SEEK_SET), 0);
	snprintf(o.fifo, sizeof o.fifo, "/tmp/goro-calls-%d-fifo", getpid());
	unlink(o.fifo);		/* of a process that was ended */
	CHECK_EQ(mkfifo(o.fifo, 0600), 0);
	o.tty_master = posix_openpt(O_RDWR | O_NOCTTY);
	CHECK(o.tty_master >= 0 && grantpt(o.tty_master) == 0 && unlockpt(o.tty_master) == 0);
	CHECK_EQ(ptsname_r(o.tty_master, name, sizeof name), 0);
	fd = open(name, O_RDWR | O_NOCTTY);
	CHECK(fd >= 0);
	o.tty = fd;
}

static void make_sockets(void)
{
	socklen_t n = sizeof o.addr;
	int pair[2];

	CHECK_EQ(pipe(pair), 0);
	o.in = pair[0], o.out = pair[1];
	CHECK_EQ(pipe(pair), 0);
	o.full_in = pair[0], o.full_out = pair[1];
	CHECK_EQ(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
	while (write(pair[1], buf, sizeof buf) > 0)
		;
	CHECK_EQ(fcntl(pair[1], F_SETFL, 0), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	o.a = pair[0], o.b = pair[1];
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	o.crowded = pair[0], o.crowded_peer = pair[1];
	while (send(o.crowded, buf, sizeof buf, MSG_DONTWAIT) > 0)
		;
	o.listener = socket(AF_INET, SOCK_STREAM, 0);
	o.addr = (struct sockaddr_in){ .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK_EQ(bind(o.listener, (struct sockaddr *)&o.addr, sizeof o.addr), 0);
	CHECK_EQ(getsockname(o.listener, (struct sockaddr *)&o.addr, &n), 0);
	CHECK_EQ(listen(o.listener, 5), 0);
	o.fresh = socket(AF_INET, SOCK_STREAM, 0);
	o.epoll = epoll_create1(0);
	CHECK_EQ(epoll_ctl(o.epoll, EPOLL_CTL_ADD, o.in, &(struct epoll_event){ .events = EPOLLIN }), 0);
}

static void *wait_for_end(void *arg)
{
	char c;

	(void)arg;
	/* Not read: this thread is not the one that is tested. */
	return (void *)(intptr_t)syscall(SYS_read, o.thread_waits, &c, 1);
}

static int wait_for_end_thrd(void *arg)
{
	return (int)(intptr_t)wait_for_end(arg);
}

static int child_out, thread_out;

static void make_workers(bool thrd)
{
	int ends[2];
	char c;

	CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
	o.thread_waits = ends[0], thread_out = ends[1];
	if (thrd)
		CHECK_EQ(thrd_create(&o.thrd, wait_for_end_thrd, NULL), thrd_success);
	else
		CHECK_EQ(pthread_create(&o.thread, NULL, wait_for_end, NULL), 0);
	CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
	o.child = fork();
	if (o.child == 0) {
		close(ends[1]);
		close(thread_out);
		syscall(SYS_read, ends[0], &c, 1);
		_exit(7);
	}
	o.child_waits = ends[0], child_out = ends[1];
}

static mqd_t make_mq(struct mq_attr *attr, const char *what)
{
	char name[64];
	mqd_t q;

	snprintf(name, sizeof name, "/goro-calls-%d-%s", getpid(), what);
	q = mq_open(name, O_RDWR | O_CREAT, 0600, attr);
	mq_unlink(name);
	return q;
}

static void make_queues(void)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	struct { long type; char text[8]; } m = { 1, "" };

	CHECK_EQ(sem_init(&o.sem, 0, 0), 0);
	CHECK_EQ(pthread_mutex_init(&o.mutex, NULL), 0);
	CHECK_EQ(pthread_cond_init(&o.cond, NULL), 0);
	CHECK_EQ(mtx_init(&o.mtx, mtx_plain), thrd_success);
	CHECK_EQ(cnd_init(&o.cnd), thrd_success);
	CHECK_EQ(pthread_barrier_init(&o.barrier, NULL, 2), 0);
	o.mq = make_mq(&attr, "one");
	o.mq_full = make_mq(&attr, "full");
	if (o.mq_full >= 0)
		CHECK_EQ(mq_send(o.mq_full, "", 1, 0), 0);
	o.msg = msgget(IPC_PRIVATE, 0600);
	o.msg_full = msgget(IPC_PRIVATE, 0600);
	while (msgsnd(o.msg_full, &m, 8, IPC_NOWAIT) == 0)
		;
	o.sems = semget(IPC_PRIVATE, 1, 0600);
}

static void make_all(bool thrd)
{
	signal(SIGPIPE, SIG_IGN);
	CHECK_EQ(sem_init(&handed, 0, 0), 0);
	make_workers(thrd);
	make_sockets();
	make_files();
	make_queues();
}

static void remove_all(void)
{
	unlink(o.fifo);
	msgctl(o.msg, IPC_RMID, NULL);
	msgctl(o.msg_full, IPC_RMID, NULL);
	semctl(o.sems, 0, IPC_RMID);
}

/* -------------------------------------------------------- what ends a sleep */

static pthread_t caller;	/* the thread that makes the call */

static void fill_pipe(void) { CHECK_EQ(syscall(SYS_write, o.out, "x", 1), 1); }
static void drain_pipe(void) { CHECK(syscall(SYS_read, o.full_in, sink, sizeof sink) > 0); }
static void fill_socket(void) { CHECK_EQ(syscall(SYS_write, o.b, "x", 1), 1); }
static void end_child(void) { close(child_out); }
static void end_thread(void) { close(thread_out); }
static void post(void) { sem_post(&o.sem); }
static void raise_it(void) { CHECK_EQ(pthread_kill(caller, SIGUSR1), 0); }
static void unlock_file(void) { close(o.other); }
static void nothing(void) { }

static void drain_socket(void)
{
	while (recv(o.crowded_peer, sink, sizeof sink, MSG_DONTWAIT) > 0)
		;
}

static void come(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK_EQ(syscall(SYS_connect, fd, &o.addr, sizeof o.addr), 0);
}

static void open_fifo(void)
{
	long fd;

	/* The caller is between the look and the call, or in it. */
	while ((fd = syscall(SYS_openat, AT_FDCWD, o.fifo, O_WRONLY | O_NONBLOCK)) < 0)
		CHECK_EQ(errno, ENXIO);
}

static void read_fifo(void)
{
	CHECK(syscall(SYS_openat, AT_FDCWD, o.fifo, O_RDONLY | O_NONBLOCK) >= 0);
}

static void signal_cond(void)
{
	pthread_mutex_lock(&o.mutex);
	o.flag = true;
	pthread_cond_signal(&o.cond);
	pthread_mutex_unlock(&o.mutex);
}

static void signal_cnd(void)
{
	mtx_lock(&o.mtx);
	o.flag = true;
	cnd_signal(&o.cnd);
	mtx_unlock(&o.mtx);
}

static void come_to_barrier(void)
{
	int r = pthread_barrier_wait(&o.barrier);

	CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
}

static void send_mq(void) { CHECK_EQ(mq_send(o.mq, "x", 1, 0), 0); }
static void receive_mq(void) { CHECK_EQ(mq_receive(o.mq_full, sink, 8, NULL), 1); }

static struct message { long type; char text[8]; } message = { 1, "" };
static void send_msg(void) { CHECK_EQ(syscall(SYS_msgsnd, o.msg, &message, 8, 0), 0); }

static void receive_msg(void)
{
	for (int i = 0; i < 8; i++)
		CHECK_EQ(syscall(SYS_msgrcv, o.msg_full, &message, 8, 0, IPC_NOWAIT), 8);
}

static void raise_sem(void) { CHECK_EQ(semctl(o.sems, 0, SETVAL, 1), 0); }
static void drain_tty(void) { tcflush(o.tty, TCOFLUSH); }

/* ---------------------------------------------------------------- the calls */

/* libc's name, as this program sees it, also where no header declares it. */
#define AS(name, type, ...) ((type (*)(__VA_ARGS__))dlsym(RTLD_DEFAULT, name))

static fd_set *only(int fd)
{
	static fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return &set;
}

static struct pollfd *to_read(int fd)
{
	static struct pollfd p;

	p = (struct pollfd){ .fd = fd, .events = POLLIN };
	return &p;
}

static struct msghdr *header(void)
{
	static struct msghdr m;

	m = (struct msghdr){ .msg_iov = &vec, .msg_iovlen = 1 };
	return &m;
}

static struct mmsghdr *headers(void)
{
	static struct mmsghdr m;

	m = (struct mmsghdr){ .msg_hdr = *header() };
	return &m;
}

static int wait_cond(int (*once)(void))
{
	int r = 0;

	pthread_mutex_lock(&o.mutex);
	do
		r = once();
	while (r == 0 && !o.flag);
	pthread_mutex_unlock(&o.mutex);
	return r;
}

static int once_wait(void) { return pthread_cond_wait(&o.cond, &o.mutex); }

static int once_timed(void)
{
	struct timespec t = in_an_hour(CLOCK_REALTIME);

	return pthread_cond_timedwait(&o.cond, &o.mutex, &t);
}

static int once_cnd(bool timed)
{
	struct timespec t = in_an_hour(CLOCK_REALTIME);
	int r;

	mtx_lock(&o.mtx);
	do
		r = timed ? cnd_timedwait(&o.cnd, &o.mtx, &t) : cnd_wait(&o.cnd, &o.mtx);
	while (r == thrd_success && !o.flag);
	mtx_unlock(&o.mtx);
	return r;
}

static void on_usr1(int sig)
{
	(void)sig;
}

/* SIGUSR1 is blocked, and comes while the call waits. */
static sigset_t *usr1(void)
{
	static sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return &set;
}

static void block_usr1(void)
{
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_usr1 }, NULL);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, usr1(), NULL), 0);
}

static sigset_t *all_but_usr1(void)
{
	static sigset_t set;

	sigfillset(&set);
	sigdelset(&set, SIGUSR1);
	return &set;
}

static struct flock whole_file(void)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
}

static void lock_other(void)
{
	struct flock l = whole_file();

	CHECK_EQ(fcntl(o.other, F_OFD_SETLK, &l), 0);
}

static void flock_other(void)
{
	CHECK_EQ(flock(o.other, LOCK_EX), 0);
}

static int status;
static struct rusage usage;
static siginfo_t info;
static char host[256];
static struct addrinfo *found;
static struct hostent entry, *entry_found;
static int h_error;
static struct sockaddr_in localhost = { .sin_family = AF_INET };

/* How the call behaves; what has to hold in each case is in try_call. */
enum how {
	IF_WAITS,	/* hands over if it would wait, and not where its end has come */
	ALWAYS,		/* hands over without a look */
	NEVER,		/* what is called here does not wait: not handed over */
};

static struct timespec until;
static const struct timespec *hour(clockid_t clock)
{
	until = in_an_hour(clock);
	return &until;
}

/* CASE(name, how, what ends it, expression that is true if the call did its work,
 * before) */
#define CASES                                                                              \
	CASE(read, IF_WAITS, fill_pipe, read(o.in, buf, 1) == 1, nothing)                  \
	CASE(readv, IF_WAITS, fill_pipe, readv(o.in, &vec, 1) == 1, nothing)               \
	CASE(write, IF_WAITS, drain_pipe, write(o.full_out, buf, 1) == 1, nothing)         \
	CASE(writev, IF_WAITS, drain_pipe, writev(o.full_out, &vec, 1) == 1, nothing)      \
	CASE(pread, NEVER, nothing, pread(o.file, buf, 4, 1) == 4, nothing)                \
	CASE(pwrite, NEVER, nothing, pwrite(o.file, buf, 4, 1) == 4, nothing)              \
	CASE(preadv, NEVER, nothing, preadv(o.file, &vec, 1, 1) == 1, nothing)             \
	CASE(pwritev, NEVER, nothing, pwritev(o.file, &vec, 1, 1) == 1, nothing)           \
	CASE(open, IF_WAITS, open_fifo, open(o.fifo, O_RDONLY) >= 0, nothing)              \
	CASE(openat, IF_WAITS, open_fifo, openat(AT_FDCWD, o.fifo, O_RDONLY) >= 0, nothing) \
	CASE(creat, IF_WAITS, read_fifo, creat(o.fifo, 0600) >= 0, nothing)                \
	CASE(fcntl, IF_WAITS, unlock_file,                                                 \
	     fcntl(o.file, F_OFD_SETLKW, &(struct flock){ .l_type = F_WRLCK }) == 0, lock_other) \
	CASE(lockf, IF_WAITS, unlock_file, lockf(o.file, F_LOCK, 0) == 0, lock_other)      \
	CASE(flock, IF_WAITS, unlock_file, flock(o.file, LOCK_EX) == 0, flock_other)       \
	CASE(fsync, ALWAYS, nothing, fsync(o.file) == 0, nothing)                          \
	CASE(fdatasync, ALWAYS, nothing, fdatasync(o.file) == 0, nothing)                  \
	CASE(msync, ALWAYS, nothing, msync((void *)((uintptr_t)buf & -4096ul), 4096, MS_SYNC) == 0, nothing) \
	CASE(sync, ALWAYS, nothing, (sync(), true), nothing)                               \
	CASE(syncfs, ALWAYS, nothing, syncfs(o.in) == 0, nothing)                          \
	CASE(tcdrain, ALWAYS, drain_tty, tcdrain(o.tty) == 0, nothing)                     \
	CASE(splice, IF_WAITS, fill_pipe, splice(o.in, NULL, o.a, NULL, 1, 0) == 1, nothing) \
	CASE(tee, IF_WAITS, fill_pipe, tee(o.in, roomy(), 1, 0) == 1, nothing)             \
	CASE(vmsplice, IF_WAITS, drain_pipe, vmsplice(o.full_out, &vec, 1, 0) == 1, nothing) \
	CASE(sendfile, IF_WAITS, drain_socket, sendfile(o.crowded, o.file, NULL, 1) == 1, nothing) \
	CASE(connect, ALWAYS, nothing, connect(o.fresh, (struct sockaddr *)&o.addr, sizeof o.addr) == 0, \
	     nothing)                                                                      \
	CASE(accept, IF_WAITS, come, accept(o.listener, NULL, NULL) >= 0, nothing)         \
	CASE(accept4, IF_WAITS, come, accept4(o.listener, NULL, NULL, 0) >= 0, nothing)    \
	CASE(recv, IF_WAITS, fill_socket, recv(o.a, buf, 1, 0) == 1, nothing)              \
	CASE(recvfrom, IF_WAITS, fill_socket, recvfrom(o.a, buf, 1, 0, NULL, NULL) == 1, nothing) \
	CASE(recvmsg, IF_WAITS, fill_socket, recvmsg(o.a, header(), 0) == 1, nothing)      \
	CASE(recvmmsg, IF_WAITS, fill_socket, recvmmsg(o.a, headers(), 1, 0, NULL) == 1, nothing) \
	CASE(send, IF_WAITS, drain_socket, send(o.crowded, buf, 1, 0) == 1, nothing)       \
	CASE(sendto, IF_WAITS, drain_socket, sendto(o.crowded, buf, 1, 0, NULL, 0) == 1, nothing) \
	CASE(sendmsg, IF_WAITS, drain_socket, sendmsg(o.crowded, header(), 0) == 1, nothing) \
	CASE(sendmmsg, IF_WAITS, drain_socket, sendmmsg(o.crowded, headers(), 1, 0) == 1, nothing) \
	CASE(poll, IF_WAITS, fill_pipe, poll(to_read(o.in), 1, -1) == 1, nothing)          \
	CASE(ppoll, IF_WAITS, fill_pipe, ppoll(to_read(o.in), 1, NULL, NULL) == 1, nothing) \
	CASE(select, IF_WAITS, fill_pipe, select(o.in + 1, only(o.in), NULL, NULL, NULL) == 1, nothing) \
	CASE(pselect, IF_WAITS, fill_pipe,                                                 \
	     pselect(o.in + 1, only(o.in), NULL, NULL, NULL, NULL) == 1, nothing)          \
	CASE(epoll_wait, IF_WAITS, fill_pipe, epoll_wait(o.epoll, &event, 1, -1) == 1, nothing) \
	CASE(epoll_pwait, IF_WAITS, fill_pipe, epoll_pwait(o.epoll, &event, 1, -1, NULL) == 1, nothing) \
	CASE(nanosleep, ALWAYS, nothing, nanosleep(&moment, NULL) == 0, nothing)           \
	CASE(clock_nanosleep, ALWAYS, nothing,                                             \
	     clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL) == 0, nothing)             \
	CASE(usleep, ALWAYS, nothing, usleep(1000) == 0, nothing)                          \
	CASE(sleep, ALWAYS, raise_it, sleep(1000) > 900, block_none)                       \
	CASE(pause, ALWAYS, raise_it, pause() == -1 && errno == EINTR, block_none)         \
	CASE(sigsuspend, ALWAYS, raise_it, sigsuspend(all_but_usr1()) == -1 && errno == EINTR, block_usr1) \
	CASE(sigwait, ALWAYS, raise_it, sigwait(usr1(), &status) == 0 && status == SIGUSR1, block_usr1) \
	CASE(sigwaitinfo, ALWAYS, raise_it, sigwaitinfo(usr1(), &info) == SIGUSR1, block_usr1) \
	CASE(sigtimedwait, ALWAYS, raise_it, sigtimedwait(usr1(), &info, NULL) == SIGUSR1, block_usr1) \
	CASE(getaddrinfo, ALWAYS, nothing, getaddrinfo("localhost", NULL, NULL, &found) == 0, nothing) \
	CASE(getnameinfo, ALWAYS, nothing, name_of_localhost(), nothing)                   \
	CASE(gethostbyname, ALWAYS, nothing, gethostbyname("localhost") != NULL, nothing)  \
	CASE(gethostbyname2, ALWAYS, nothing, gethostbyname2("localhost", AF_INET) != NULL, nothing) \
	CASE(gethostbyaddr, ALWAYS, nothing, gethostbyaddr("\x7f\0\0\1", 4, AF_INET) != NULL, nothing) \
	CASE(gethostbyname_r, ALWAYS, nothing,                                             \
	     gethostbyname_r("localhost", &entry, buf, sizeof buf, &entry_found, &h_error) == 0, nothing) \
	CASE(gethostbyname2_r, ALWAYS, nothing,                                            \
	     gethostbyname2_r("localhost", AF_INET, &entry, buf, sizeof buf, &entry_found, &h_error) == 0, \
	     nothing)                                                                      \
	CASE(gethostbyaddr_r, ALWAYS, nothing,                                             \
	     gethostbyaddr_r("\x7f\0\0\1", 4, AF_INET, &entry, buf, sizeof buf, &entry_found, &h_error) == 0, \
	     nothing)                                                                      \
	CASE(wait, IF_WAITS, end_child, wait(&status) == o.child && WEXITSTATUS(status) == 7, nothing) \
	CASE(waitpid, IF_WAITS, end_child, waitpid(o.child, &status, 0) == o.child, nothing) \
	CASE(wait3, IF_WAITS, end_child, wait3(&status, 0, &usage) == o.child, nothing)    \
	CASE(wait4, IF_WAITS, end_child, wait4(0, &status, 0, &usage) == o.child, nothing) \
	CASE(waitid, IF_WAITS, end_child, waitid(P_PID, (id_t)o.child, &info, WEXITED) == 0, nothing) \
	CASE(system, ALWAYS, nothing, WEXITSTATUS(system("exit 3")) == 3, nothing)         \
	CASE(pclose, ALWAYS, nothing, WEXITSTATUS(pclose(o.popened)) == 4, popen_one)      \
	CASE(sem_wait, IF_WAITS, post, sem_wait(&o.sem) == 0, nothing)                     \
	CASE(sem_timedwait, IF_WAITS, post, sem_timedwait(&o.sem, hour(CLOCK_REALTIME)) == 0, nothing) \
	CASE(pthread_cond_wait, ALWAYS, signal_cond, wait_cond(once_wait) == 0, nothing)   \
	CASE(pthread_cond_timedwait, ALWAYS, signal_cond, wait_cond(once_timed) == 0, nothing) \
	CASE(pthread_join, ALWAYS, end_thread, pthread_join(o.thread, NULL) == 0, nothing) \
	CASE(pthread_timedjoin_np, ALWAYS, end_thread,                                     \
	     pthread_timedjoin_np(o.thread, NULL, hour(CLOCK_REALTIME)) == 0, nothing)     \
	CASE(pthread_barrier_wait, ALWAYS, come_to_barrier,                                \
	     pthread_barrier_wait(&o.barrier) <= 0, nothing)                               \
	CASE(cnd_wait, ALWAYS, signal_cnd, once_cnd(false) == thrd_success, nothing)       \
	CASE(cnd_timedwait, ALWAYS, signal_cnd, once_cnd(true) == thrd_success, nothing)   \
	CASE(thrd_join, ALWAYS, end_thread, thrd_join(o.thrd, NULL) == thrd_success, nothing) \
	CASE(thrd_sleep, ALWAYS, nothing, thrd_sleep(&moment, NULL) == 0, nothing)         \
	CASE(mq_receive, IF_WAITS, send_mq, mq_receive(o.mq, buf, 8, NULL) == 1, need_mq)  \
	CASE(mq_timedreceive, IF_WAITS, send_mq,                                           \
	     mq_timedreceive(o.mq, buf, 8, NULL, hour(CLOCK_REALTIME)) == 1, need_mq)      \
	CASE(mq_send, IF_WAITS, receive_mq, mq_send(o.mq_full, buf, 1, 0) == 0, need_mq)   \
	CASE(mq_timedsend, IF_WAITS, receive_mq,                                           \
	     mq_timedsend(o.mq_full, buf, 1, 0, hour(CLOCK_REALTIME)) == 0, need_mq)       \
	CASE(msgrcv, IF_WAITS, send_msg, msgrcv(o.msg, &message, 8, 0, 0) == 8, nothing)   \
	CASE(msgsnd, IF_WAITS, receive_msg, msgsnd(o.msg_full, &message, 8, 0) == 0, nothing) \
	CASE(semop, IF_WAITS, raise_sem, semop(o.sems, &(struct sembuf){ .sem_op = -1 }, 1) == 0, nothing) \
	CASE(semtimedop, IF_WAITS, raise_sem,                                              \
	     semtimedop(o.sems, &(struct sembuf){ .sem_op = -1 }, 1, &second) == 0, nothing) \
	CASE(aio_suspend, ALWAYS, fill_pipe,                                               \
	     aio_suspend((const struct aiocb *[]){ &o.aio }, 1, NULL) == 0, begin_aio)     \
	GLIBC_CASES

#ifdef __GLIBC__
#define GLIBC_CASES                                                                        \
	CASE(preadv2, IF_WAITS, fill_pipe, preadv2(o.in, &vec, 1, -1, 0) == 1, nothing)    \
	CASE(pwritev2, IF_WAITS, drain_pipe, pwritev2(o.full_out, &vec, 1, -1, 0) == 1, nothing) \
	CASE(sync_file_range, ALWAYS, nothing,                                             \
	     sync_file_range(o.file, 0, 4096, SYNC_FILE_RANGE_WAIT_BEFORE) == 0, nothing)  \
	CASE(epoll_pwait2, IF_WAITS, fill_pipe,                                            \
	     AS("epoll_pwait2", int, int, void *, int, const void *, const void *)(        \
		     o.epoll, &event, 1, &second, NULL) == 1, nothing)                     \
	CASE(sem_clockwait, IF_WAITS, post,                                                \
	     AS("sem_clockwait", int, sem_t *, clockid_t, const void *)(                   \
		     &o.sem, CLOCK_MONOTONIC, hour(CLOCK_MONOTONIC)) == 0, nothing)        \
	CASE(pthread_cond_clockwait, ALWAYS, signal_cond, wait_cond(once_clock) == 0, nothing) \
	CASE(pthread_clockjoin_np, ALWAYS, end_thread,                                     \
	     AS("pthread_clockjoin_np", int, pthread_t, void *, clockid_t, const void *)(  \
		     o.thread, NULL, CLOCK_MONOTONIC, hour(CLOCK_MONOTONIC)) == 0, nothing) \
	RES_CASES                                                                          \
	CASE(pread64, NEVER, nothing, pread64(o.file, buf, 4, 1) == 4, nothing)            \
	CASE(pwrite64, NEVER, nothing, pwrite64(o.file, buf, 4, 1) == 4, nothing)          \
	CASE(preadv64, NEVER, nothing, preadv64(o.file, &vec, 1, 1) == 1, nothing)         \
	CASE(pwritev64, NEVER, nothing, pwritev64(o.file, &vec, 1, 1) == 1, nothing)       \
	CASE(preadv64v2, IF_WAITS, fill_pipe, preadv64v2(o.in, &vec, 1, -1, 0) == 1, nothing) \
	CASE(pwritev64v2, IF_WAITS, drain_pipe, pwritev64v2(o.full_out, &vec, 1, -1, 0) == 1, nothing) \
	CASE(open64, IF_WAITS, open_fifo, open64(o.fifo, O_RDONLY) >= 0, nothing)          \
	CASE(openat64, IF_WAITS, open_fifo, openat64(AT_FDCWD, o.fifo, O_RDONLY) >= 0, nothing) \
	CASE(creat64, IF_WAITS, read_fifo, creat64(o.fifo, 0600) >= 0, nothing)            \
	CASE(fcntl64, IF_WAITS, unlock_file,                                               \
	     AS("fcntl64", int, int, int, ...)(                                            \
		     o.file, F_OFD_SETLKW, &(struct flock){ .l_type = F_WRLCK }) == 0, lock_other) \
	CASE(lockf64, IF_WAITS, unlock_file, lockf64(o.file, F_LOCK, 0) == 0, lock_other)  \
	CASE(sendfile64, IF_WAITS, drain_socket, sendfile64(o.crowded, o.file, NULL, 1) == 1, nothing) \
	CASE(aio_suspend64, ALWAYS, fill_pipe,                                             \
	     AS("aio_suspend64", int, const void *, int, const void *)(                    \
		     (const struct aiocb *[]){ &o.aio }, 1, NULL) == 0, begin_aio)         \
	CASE(__read_chk, IF_WAITS, fill_pipe,                                              \
	     AS("__read_chk", ssize_t, int, void *, size_t, size_t)(o.in, buf, 1, sizeof buf) == 1, nothing) \
	CASE(__pread_chk, NEVER, nothing,                                                  \
	     AS("__pread_chk", ssize_t, int, void *, size_t, off_t, size_t)(               \
		     o.file, buf, 4, 1, sizeof buf) == 4, nothing)                         \
	CASE(__pread64_chk, NEVER, nothing,                                                \
	     AS("__pread64_chk", ssize_t, int, void *, size_t, off_t, size_t)(             \
		     o.file, buf, 4, 1, sizeof buf) == 4, nothing)                         \
	CASE(__recv_chk, IF_WAITS, fill_socket,                                            \
	     AS("__recv_chk", ssize_t, int, void *, size_t, size_t, int)(                  \
		     o.a, buf, 1, sizeof buf, 0) == 1, nothing)                            \
	CASE(__recvfrom_chk, IF_WAITS, fill_socket,                                        \
	     AS("__recvfrom_chk", ssize_t, int, void *, size_t, size_t, int, void *, void *)( \
		     o.a, buf, 1, sizeof buf, 0, NULL, NULL) == 1, nothing)                \
	CASE(__poll_chk, IF_WAITS, fill_pipe,                                              \
	     AS("__poll_chk", int, void *, nfds_t, int, size_t)(                           \
		     to_read(o.in), 1, -1, sizeof(struct pollfd)) == 1, nothing)           \
	CASE(__ppoll_chk, IF_WAITS, fill_pipe,                                             \
	     AS("__ppoll_chk", int, void *, nfds_t, const void *, const void *, size_t)(   \
		     to_read(o.in), 1, NULL, NULL, sizeof(struct pollfd)) == 1, nothing)   \
	CASE(__open_2, IF_WAITS, open_fifo,                                                \
	     AS("__open_2", int, const char *, int)(o.fifo, O_RDONLY) >= 0, nothing)       \
	CASE(__open64_2, IF_WAITS, open_fifo,                                              \
	     AS("__open64_2", int, const char *, int)(o.fifo, O_RDONLY) >= 0, nothing)     \
	CASE(__openat_2, IF_WAITS, open_fifo,                                              \
	     AS("__openat_2", int, int, const char *, int)(AT_FDCWD, o.fifo, O_RDONLY) >= 0, nothing) \
	CASE(__openat64_2, IF_WAITS, open_fifo,                                            \
	     AS("__openat64_2", int, int, const char *, int)(AT_FDCWD, o.fifo, O_RDONLY) >= 0, nothing) \
	CASE(__read, IF_WAITS, fill_pipe,                                                  \
	     AS("__read", ssize_t, int, void *, size_t)(o.in, buf, 1) == 1, nothing)       \
	CASE(__write, IF_WAITS, drain_pipe,                                                \
	     AS("__write", ssize_t, int, const void *, size_t)(o.full_out, buf, 1) == 1, nothing) \
	CASE(__pread64, NEVER, nothing,                                                    \
	     AS("__pread64", ssize_t, int, void *, size_t, off_t)(o.file, buf, 4, 1) == 4, nothing) \
	CASE(__pwrite64, NEVER, nothing,                                                   \
	     AS("__pwrite64", ssize_t, int, const void *, size_t, off_t)(o.file, buf, 4, 1) == 4, nothing) \
	CASE(__open, IF_WAITS, open_fifo,                                                  \
	     AS("__open", int, const char *, int, ...)(o.fifo, O_RDONLY) >= 0, nothing)    \
	CASE(__open64, IF_WAITS, open_fifo,                                                \
	     AS("__open64", int, const char *, int, ...)(o.fifo, O_RDONLY) >= 0, nothing)  \
	CASE(__fcntl, IF_WAITS, unlock_file,                                               \
	     AS("__fcntl", int, int, int, ...)(                                            \
		     o.file, F_OFD_SETLKW, &(struct flock){ .l_type = F_WRLCK }) == 0, lock_other) \
	CASE(__connect, ALWAYS, nothing,                                                   \
	     AS("__connect", int, int, const void *, socklen_t)(                           \
		     o.fresh, &o.addr, sizeof o.addr) == 0, nothing)                       \
	CASE(__send, IF_WAITS, drain_socket,                                               \
	     AS("__send", ssize_t, int, const void *, size_t, int)(o.crowded, buf, 1, 0) == 1, nothing) \
	CASE(__poll, IF_WAITS, fill_pipe,                                                  \
	     AS("__poll", int, void *, nfds_t, int)(to_read(o.in), 1, -1) == 1, nothing)   \
	CASE(__select, IF_WAITS, fill_pipe,                                                \
	     AS("__select", int, int, void *, void *, void *, void *)(                     \
		     o.in + 1, only(o.in), NULL, NULL, NULL) == 1, nothing)                \
	CASE(__nanosleep, ALWAYS, nothing,                                                 \
	     AS("__nanosleep", int, const void *, void *)(&moment, NULL) == 0, nothing)    \
	CASE(__sigsuspend, ALWAYS, raise_it,                                               \
	     AS("__sigsuspend", int, const void *)(all_but_usr1()) == -1 && errno == EINTR, block_usr1) \
	CASE(__wait, IF_WAITS, end_child, AS("__wait", pid_t, int *)(&status) == o.child, nothing) \
	CASE(__waitpid, IF_WAITS, end_child,                                               \
	     AS("__waitpid", pid_t, pid_t, int *, int)(o.child, &status, 0) == o.child, nothing)

/* A query of no class and type is refused before it is sent: no name server is asked. */
#define RES_CASE(name, ...) CASE(name, ALWAYS, nothing, res_fails(__VA_ARGS__), nothing)
#define RES_CASES                                                                          \
	RES_CASE(res_query, AS("res_query", int, const char *, int, int, void *, int)(bad_name, 1, 1, answer, 512)) \
	RES_CASE(res_search, AS("res_search", int, const char *, int, int, void *, int)(bad_name, 1, 1, answer, 512)) \
	RES_CASE(res_querydomain,                                                          \
	         AS("res_querydomain", int, const char *, const char *, int, int, void *, int)( \
		         bad_name, bad_name, 1, 1, answer, 512))                           \
	RES_CASE(res_send, AS("res_send", int, const void *, int, void *, int)("", 0, answer, 1)) \
	RES_CASE(res_nquery, AS("res_nquery", int, void *, const char *, int, int, void *, int)( \
		         resolver(), bad_name, 1, 1, answer, 512))                         \
	RES_CASE(res_nsearch, AS("res_nsearch", int, void *, const char *, int, int, void *, int)( \
		         resolver(), bad_name, 1, 1, answer, 512))                         \
	RES_CASE(res_nquerydomain,                                                         \
	         AS("res_nquerydomain", int, void *, const char *, const char *, int, int, void *, int)( \
		         resolver(), bad_name, bad_name, 1, 1, answer, 512))               \
	RES_CASE(res_nsend, AS("res_nsend", int, void *, const void *, int, void *, int)(  \
		         resolver(), "", 0, answer, 1))
#else
#define GLIBC_CASES
#endif

static struct epoll_event event;

static int roomy(void)
{
	static int ends[2] = { -1, -1 };

	if (ends[0] < 0)
		CHECK_EQ(pipe(ends), 0);
	return ends[1];
}

static void block_none(void)
{
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_usr1 }, NULL);
}

static int name_of_localhost(void)
{
	localhost.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return getnameinfo((struct sockaddr *)&localhost, sizeof localhost, host, sizeof host, NULL, 0,
	                   0) == 0;
}

static void popen_one(void)
{
	o.popened = popen("exit 4", "r");
	CHECK(o.popened);
}

static void need_mq(void)
{
	if (o.mq >= 0 && o.mq_full >= 0)
		return;
	remove_all();
	SKIP("no POSIX message queues here");
}

static void begin_aio(void)
{
	o.aio = (struct aiocb){ .aio_fildes = o.in, .aio_buf = buf, .aio_nbytes = 1 };
	CHECK_EQ(aio_read(&o.aio), 0);
}

#ifdef __GLIBC__
static int once_clock(void)
{
	struct timespec t = in_an_hour(CLOCK_MONOTONIC);

	return AS("pthread_cond_clockwait", int, void *, void *, clockid_t, const void *)(
		&o.cond, &o.mutex, CLOCK_MONOTONIC, &t);
}

#include <resolv.h>

/* Longer than a name may be. */
static char bad_name[1200];
static char answer[512];

static void *resolver(void)
{
	memset(bad_name, 'x', sizeof bad_name - 1);
	CHECK_EQ(res_init(), 0);
	return &_res;
}

static int res_fails(int r)
{
	return r < 0;
}
#endif

/* ------------------------------------------------------------------ a trial */

struct trial {
	const char *name;
	enum how how;
	void (*end)(void);
	int (*call)(void);
	void (*before)(void);
};

#define CASE(name, how, end, works, before)       \
	static int call_##name(void)              \
	{                                         \
		return works;                     \
	}
CASES
#undef CASE

static const struct trial trials[] = {
#define CASE(name, how, end, works, before) { #name, how, end, call_##name, before },
	CASES
#undef CASE
};
#define TRIALS (sizeof trials / sizeof trials[0])

static int caller_tid;		/* the thread that makes the call */

static bool is_asleep(void)
{
	char path[64], first = 'r';
	int fd;

	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", load_relaxed(&caller_tid));
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
	if (fd < 0 || syscall(SYS_read, fd, &first, 1) != 1)
		first = 'r';
	syscall(SYS_close, fd);
	return first != 'r';
}

static const struct trial *current;

/* Ends the sleep once the processor was handed over, or where nobody waits for it, once
 * the caller sleeps. */
static void *end_sleep(void *arg)
{
	(void)arg;
	if (load_relaxed(&awaited))
		while (sem_trywait(&handed) != 0)
			sched_yield();
	while (load_relaxed(&current->end) != nothing && !is_asleep())
		sched_yield();
	current->end();
	return NULL;
}

enum scene { SLEEPS, READY, NOBODY_WAITS };

/* A call that works may change errno by itself: musl's sem_wait does, and glibc's preadv2
 * where the kernel (an emulator) has none. */
static bool errno_is_left(void)
{
#ifdef __GLIBC__
	return errno == EXDEV || errno == ENOSYS;
#else
	return errno != ENOTNAM;
#endif
}

static _Noreturn void no_such_scene(void)
{
	remove_all();
	exit(0);
}

/* In a process of its own. */
static void try_call(const struct trial *t, enum scene scene)
{
	bool ended_by_other = scene != READY && t->how != NEVER;
	int before, result;
	pthread_t ender;

	if (strncmp(t->name, "res_", 4) == 0) {
#ifdef __GLIBC__
		resolver();
#endif
	}
	make_all(strcmp(t->name, "thrd_join") == 0);
	t->before();
	current = t;
	caller = pthread_self();
	store_relaxed(&caller_tid, gettid());
	if (scene == READY && t->how == IF_WAITS && t->end != open_fifo && t->end != read_fifo)
		t->end();
	if (scene == READY && t->end == end_child)
		while (syscall(SYS_waitid, P_PID, o.child, &info, WEXITED | WNOWAIT, NULL) != 0)
			;
	if (scene == READY && (t->how == ALWAYS || t->end == open_fifo || t->end == read_fifo))
		no_such_scene();
	store_relaxed(&awaited, scene != NOBODY_WAITS);
	before = load_relaxed(&handed_over);
	errno = EXDEV;
	if (ended_by_other)
		CHECK_EQ(pthread_create(&ender, NULL, end_sleep, NULL), 0);
	result = t->call();
	if (!result && errno == ENOSYS) {
		remove_all();
		SKIP("not in this kernel");
	}
	if (!result)
		FAIL("%s, scene %d: it failed, errno %d", t->name, scene, errno);
	if (t->how != ALWAYS && !errno_is_left())
		FAIL("%s, scene %d: errno became %d", t->name, scene, errno);
	store_relaxed(&awaited, 0);
	if (ended_by_other)
		CHECK_EQ(pthread_join(ender, NULL), 0);
	if (load_relaxed(&asked) == 0)
		FAIL("%s, scene %d: it is not the library's", t->name, scene);
	if ((load_relaxed(&handed_over) != before) != (scene == SLEEPS && t->how != NEVER))
		FAIL("%s, scene %d: handed over %d times", t->name, scene, load_relaxed(&handed_over) - before);
	remove_all();
	exit(0);
}

static const struct trial *child_trial;
static enum scene child_scene;

static void in_child(void)
{
	try_call(child_trial, child_scene);
}

static void try_all(enum scene scene)
{
	int skipped = 0;

	for (size_t i = 0; i < TRIALS; i++) {
		struct test_output out;

		child_trial = &trials[i];
		child_scene = scene;
		test_run_child(in_child, &out);
		skipped += out.status == TEST_SKIPPED;
		if (out.status != 0 && out.status != TEST_SKIPPED)
			FAIL("%s: status %d%s\n%s", trials[i].name, out.status,
			     out.timed_out ? ", it sleeps for ever" : "", out.err);
	}
	printf("%zu calls, %d not there\n", TRIALS, skipped);
}

/* -------------------------------------------------------------------- tests */

TEST_TIMEOUT(each_call_that_sleeps_hands_over_first, 240)
{
	try_all(SLEEPS);
}

TEST_TIMEOUT(a_call_whose_end_has_come_does_not_hand_over, 240)
{
	try_all(READY);
}

TEST_TIMEOUT(nothing_is_handed_over_where_nobody_waits, 240)
{
	try_all(NOBODY_WAITS);
}

/* ----------------------------------------------- cancelled and interrupted */

/* Where POSIX has a cancellation point, of calls that wait for an event. */
static const char *const points[] = {
	"read", "readv", "write", "writev", "open", "openat", "creat", "fcntl", "lockf", "accept",
	"recv", "recvfrom", "recvmsg", "send", "sendto", "sendmsg", "poll", "select", "pselect",
	"sleep", "pause", "sigsuspend", "sigwait", "sigwaitinfo", "sigtimedwait", "wait", "waitpid",
	"waitid", "sem_wait", "sem_timedwait", "pthread_cond_wait", "pthread_cond_timedwait",
	"pthread_join", "mq_receive", "mq_timedreceive", "mq_send", "mq_timedsend", "msgrcv",
	"msgsnd", "aio_suspend",
};

static const struct trial *trial_named(const char *name)
{
	for (size_t i = 0; i < TRIALS; i++)
		if (strcmp(trials[i].name, name) == 0)
			return &trials[i];
	FAIL("no trial of %s", name);
}

static void *call_and_wait(void *arg)
{
	const struct trial *t = arg;

	t->before();
	store_relaxed(&caller_tid, gettid());
	t->call();
	return NULL;
}

static void cancel_in_child(void)
{
	pthread_t thread;
	void *result;

	make_all(false);
	store_relaxed(&awaited, 1);
	CHECK_EQ(pthread_create(&thread, NULL, call_and_wait, (void *)child_trial), 0);
	while (sem_trywait(&handed) != 0)
		sched_yield();
	while (!is_asleep())
		sched_yield();
	store_relaxed(&awaited, 0);
	CHECK_EQ(pthread_cancel(thread), 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	remove_all();
	if (result != PTHREAD_CANCELED)
		FAIL("%s is no cancellation point any more", child_trial->name);
}

TEST_TIMEOUT(cancellation_points_are_kept, 240)
{
	GLIBC_ONLY("musl has fewer cancellation points");
	if (TOOL_ASAN)
		SKIP("ASan keeps a cancelled stack poisoned");
	for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
		struct test_output out;

		child_trial = trial_named(points[i]);
		test_run_child(cancel_in_child, &out);
		if (out.status != 0 && out.status != TEST_SKIPPED)
			FAIL("%s: status %d%s\n%s", points[i], out.status,
			     out.timed_out ? ", it is not cancelled" : "", out.err);
	}
}

/* Calls that fail with EINTR after a handler without SA_RESTART. */
static const char *const interrupted[] = {
	"read", "readv", "write", "writev", "open", "fcntl", "accept", "recv", "recvmsg", "send",
	"sendmsg", "poll", "ppoll", "select", "pselect", "epoll_wait", "epoll_pwait", "wait",
	"waitpid", "waitid", "sem_wait", "sem_timedwait", "mq_receive", "mq_send", "msgrcv",
	"msgsnd", "semop", "flock",
};

static int eintr;

static void *call_and_be_interrupted(void *arg)
{
	const struct trial *t = arg;

	t->before();
	store_relaxed(&caller_tid, gettid());
	if (!t->call() && errno == EINTR)
		store_relaxed(&eintr, 1);
	return NULL;
}

static void interrupt_in_child(void)
{
	pthread_t thread;

	make_all(false);
	block_none();
	store_relaxed(&awaited, 1);
	CHECK_EQ(pthread_create(&thread, NULL, call_and_be_interrupted, (void *)child_trial), 0);
	while (sem_trywait(&handed) != 0)
		sched_yield();
	while (!is_asleep())
		sched_yield();
	store_relaxed(&awaited, 0);
	CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	remove_all();
	if (!load_relaxed(&eintr))
		FAIL("%s does not fail with EINTR", child_trial->name);
}

TEST_TIMEOUT(a_signal_interrupts_as_without_the_library, 240)
{
	for (size_t i = 0; i < sizeof interrupted / sizeof interrupted[0]; i++) {
		struct test_output out;

		child_trial = trial_named(interrupted[i]);
		test_run_child(interrupt_in_child, &out);
		if (out.status != 0 && out.status != TEST_SKIPPED)
			FAIL("%s: status %d%s\n%s", interrupted[i], out.status,
			     out.timed_out ? ", it is not interrupted" : "", out.err);
	}
}

/* --------------------------------------------------------------- the table */

static const char *const table[] = {
#define CALL(result, name, params, args, sleeps) #name,
#define CALL_AS CALL
#include "../../extra/calls/table.h"
#undef CALL
#undef CALL_AS
};

TEST(every_call_of_the_table_is_tried)
{
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		bool tried = false;

		for (size_t k = 0; k < TRIALS; k++)
			tried |= strcmp(trials[k].name, table[i]) == 0;
		if (!tried)
			FAIL("%s is in the table, and not tried here", table[i]);
	}
	CHECK_EQ(sizeof table / sizeof table[0], TRIALS);
}
