/*
 * sleeps.h - whether a call is about to sleep: the words of table.h.
 *
 * Each asks the kernel in a way that does not wait, by syscall, which is no cancellation
 * point and none of the calls of the table. Where the kernel gives no answer, the call is
 * taken for one that does not sleep: it fails, or goro finds it asleep.
 */
#ifndef GORO_CALLS_SLEEPS_H
#define GORO_CALLS_SLEEPS_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The kernel's signal sets have 64 signals. */
#define KERNEL_SIGSET_BYTES 8

/* A limit of no time is a question, not a wait. NULL: no limit. */
static inline bool is_time(const struct timespec *t)
{
	return !t || t->tv_sec != 0 || t->tv_nsec != 0;
}

static inline bool is_time_val(const struct timeval *t)
{
	return !t || t->tv_sec != 0 || t->tv_usec != 0;
}

/* ------------------------------------------------------------ descriptors */

static inline bool polling(struct pollfd *fds, nfds_t n)
{
	struct timespec none = { 0, 0 };

	return syscall(SYS_ppoll, fds, n, &none, NULL, KERNEL_SIGSET_BYTES) == 0;
}

static inline bool no_event(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && polling(&p, 1);
}

/* Flags that the descriptor was opened with; -1: it was not. */
static inline long flags_of(int fd)
{
	return syscall(SYS_fcntl, fd, F_GETFL);
}

static inline bool opened(int fd, long with)
{
	long flags = flags_of(fd);

	return flags >= 0 && (flags & with) != 0;
}

static inline bool opened_as(int fd, long mode)
{
	long flags = flags_of(fd);

	return flags >= 0 && (flags & O_ACCMODE) == mode;
}

static inline bool blocks(int fd)
{
	long flags = flags_of(fd);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

/* To ask costs a system call, as much as a short read. So a descriptor that was ready
 * READY_ROW times in a row is asked about at one call of READY_SKIP only. By number, of
 * all threads together: a number that is used anew is only asked about too rarely at
 * first. */
#define READY_ROW  4
#define READY_SKIP 8
#define READY_FDS  1024
static struct ready_row {
	/* Calls in a row that found it ready; from READY_ROW on it goes round, and only
	 * READY_ROW itself asks. Atomic. */
	uint8_t in, out;
} ready_rows[READY_FDS];

/* Whether the descriptor, of whose direction row is, is not ready and waits for it. */
static inline bool unready(int fd, short events, uint8_t *row)
{
	struct pollfd p = { .fd = fd, .events = events };
	uint8_t n = __atomic_load_n(row, __ATOMIC_RELAXED);
	bool waits = false;

	if (fd < 0)
		return false;
	if (n <= READY_ROW)		/* above: taken for ready */
		waits = polling(&p, 1);
	n = waits ? 0 : n < READY_ROW + READY_SKIP - 1 ? n + 1 : READY_ROW;
	__atomic_store_n(row, n, __ATOMIC_RELAXED);
	return waits && blocks(fd);
}

static inline bool reading(int fd)
{
	return unready(fd, POLLIN, &ready_rows[(unsigned)fd % READY_FDS].in);
}

static inline bool writing(int fd)
{
	return unready(fd, POLLOUT, &ready_rows[(unsigned)fd % READY_FDS].out);
}

static inline bool receiving(int fd, int flags)
{
	return !(flags & (MSG_DONTWAIT | MSG_ERRQUEUE | MSG_OOB)) && reading(fd);
}

static inline bool sending(int fd, int flags)
{
	return !(flags & MSG_DONTWAIT) && writing(fd);
}

/* A connection within the machine by a path, and one that only sets an address, is made
 * at once. */
static inline bool connecting(int fd, const struct sockaddr *to)
{
	int type = 0;
	socklen_t n = sizeof type;

	return to && to->sa_family != AF_UNIX &&
	       syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 &&
	       (type == SOCK_STREAM || type == SOCK_SEQPACKET) && blocks(fd);
}

/* Of files only a FIFO waits, for its other end. */
static inline bool opening(int dir, const char *path, int flags)
{
	struct stat s;

	return path && !(flags & (O_NONBLOCK | O_PATH)) && (flags & O_ACCMODE) != O_RDWR &&
	       fstatat(dir, path, &s, 0) == 0 && S_ISFIFO(s.st_mode);
}

/* Select on copies of the sets: the call is yet to read them. Sets beyond FD_SETSIZE are
 * not looked at. */
static inline bool selecting(int n, const fd_set *in, const fd_set *out, const fd_set *ex)
{
	const fd_set *sets[3] = { in, out, ex };
	struct timespec none = { 0, 0 };
	fd_set copies[3];

	if (n < 0 || n > FD_SETSIZE)
		return n > 0;
	for (int i = 0; i < 3; i++) {
		size_t words = ((size_t)n + 8 * sizeof(long) - 1) / (8 * sizeof(long));

		if (sets[i])
			memcpy(&copies[i], sets[i], words * sizeof(long));
	}
	return syscall(SYS_pselect6, n, in ? &copies[0] : NULL, out ? &copies[1] : NULL,
	               ex ? &copies[2] : NULL, &none, NULL) == 0;
}

/* ------------------------------------------------------------------ locks */

static inline bool lock_is_taken(int fd, int get, const struct flock *wanted)
{
	struct flock l = *wanted;

	return syscall(SYS_fcntl, fd, get, &l) == 0 && l.l_type != F_UNLCK;
}

static inline bool locking_record(int fd, int what, const void *arg)
{
	const struct flock *l = arg;

	if ((what != F_SETLKW && what != F_OFD_SETLKW) || !l || l->l_type == F_UNLCK)
		return false;
	return lock_is_taken(fd, what == F_SETLKW ? F_GETLK : F_OFD_GETLK, l);
}

static inline bool locking_file(int fd, int what, off_t n)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_len = n };

	return what == F_LOCK && lock_is_taken(fd, F_GETLK, &l);
}

/* Takes the lock where it is free. The call that follows finds it taken by itself. */
static inline bool locking_whole(int fd, int what)
{
	return !(what & (LOCK_NB | LOCK_UN)) && syscall(SYS_flock, fd, what | LOCK_NB) != 0 &&
	       errno == EWOULDBLOCK;
}

/* -------------------------------------------------------------- processes */

/* Looks for a child that has ended, and leaves it to the call. */
static inline bool waiting_for(idtype_t type, id_t id, int options)
{
	siginfo_t info = { .si_pid = 0 };

	return !(options & WNOHANG) &&
	       syscall(SYS_waitid, type, id, &info, options | WNOHANG | WNOWAIT, NULL) == 0 &&
	       info.si_pid == 0;
}

static inline bool waiting(pid_t pid, int options)
{
	idtype_t type = pid > 0 ? P_PID : pid == -1 ? P_ALL : P_PGID;

	return waiting_for(type, (id_t)(pid < -1 ? -pid : pid), options | WEXITED);
}

/* ----------------------------------------------------- queues, semaphores */

static inline bool sem_is_zero(sem_t *sem)
{
	int value;

	return sem_getvalue(sem, &value) == 0 && value <= 0;
}

static inline bool queue_is_empty(int q, long type)
{
	struct msqid_ds d;

	return msgctl(q, IPC_STAT, &d) == 0 && (d.msg_qnum == 0 || type != 0);
}

static inline bool queue_is_full(int q, size_t n)
{
	struct msqid_ds d;

	return msgctl(q, IPC_STAT, &d) == 0 && d.msg_cbytes + n > d.msg_qbytes;
}

/* Whether some operation waits for a value that is not there now. */
static inline bool taking(int id, const struct sembuf *ops, size_t n)
{
	for (size_t i = 0; ops && i < n; i++) {
		int value;

		if (ops[i].sem_flg & IPC_NOWAIT || ops[i].sem_op > 0)
			continue;
		value = semctl(id, ops[i].sem_num, GETVAL);
		if (value >= 0 && (ops[i].sem_op == 0 ? value != 0 : value + ops[i].sem_op < 0))
			return true;
	}
	return false;
}

#endif
