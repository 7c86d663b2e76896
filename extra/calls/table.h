/*
 * table.h - the calls of libc that the library goes round: an X-macro list.
 *
 *	CALL(result, name, (parameters), (arguments), sleeps)
 *
 * sleeps says whether this call is about to sleep in the kernel. It is evaluated only
 * where another goroutine waits for the caller's processor, may make system calls that do
 * not wait, and leaves no trace but in errno, which the caller restores. Where it is
 * wrong nothing breaks: a call that sleeps after all is found by goro as without this
 * library, and one that does not has handed its processor over in vain. Its words are in
 * sleeps.h.
 *
 * CALL is compared with libc's own prototype. CALL_AS is not: libc declares no prototype,
 * or one with "..." or with a union. Its parameters are those that the function has in
 * registers, whether the caller passed them or not.
 *
 * Included several times; no include guard.
 */

/* ------------------------------------------------------------ descriptors */

CALL(ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, n), n != 0 && reading(fd))
CALL(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n), reading(fd))
CALL(ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, n), n != 0 && writing(fd))
CALL(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n), writing(fd))

/* What has a position has no readiness. It sleeps for sure where it passes by the page
 * cache. */
CALL(ssize_t, pread, (int fd, void *buf, size_t n, off_t at), (fd, buf, n, at), opened(fd, O_DIRECT))
CALL(ssize_t, pwrite, (int fd, const void *buf, size_t n, off_t at), (fd, buf, n, at),
     opened(fd, O_DIRECT | O_DSYNC))
CALL(ssize_t, preadv, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at),
     opened(fd, O_DIRECT))
CALL(ssize_t, pwritev, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at),
     opened(fd, O_DIRECT | O_DSYNC))

CALL_AS(int, open, (const char *path, int flags, mode_t mode), (path, flags, mode),
        opening(AT_FDCWD, path, flags))
CALL_AS(int, openat, (int dir, const char *path, int flags, mode_t mode), (dir, path, flags, mode),
        opening(dir, path, flags))
CALL(int, creat, (const char *path, mode_t mode), (path, mode), opening(AT_FDCWD, path, O_WRONLY))

CALL_AS(int, fcntl, (int fd, int what, void *arg), (fd, what, arg), locking_record(fd, what, arg))
CALL(int, lockf, (int fd, int what, off_t n), (fd, what, n), locking_file(fd, what, n))
CALL(int, flock, (int fd, int what), (fd, what), locking_whole(fd, what))

CALL(int, fsync, (int fd), (fd), true)
CALL(int, fdatasync, (int fd), (fd), true)
CALL(int, msync, (void *at, size_t n, int flags), (at, n, flags), flags & MS_SYNC)
CALL(void, sync, (void), (), true)
CALL(int, syncfs, (int fd), (fd), true)
CALL(int, tcdrain, (int fd), (fd), true)

CALL(ssize_t, splice, (int in, off_t *in_at, int out, off_t *out_at, size_t n, unsigned flags),
     (in, in_at, out, out_at, n, flags), !(flags & SPLICE_F_NONBLOCK) && (reading(in) || writing(out)))
CALL(ssize_t, tee, (int in, int out, size_t n, unsigned flags), (in, out, n, flags),
     !(flags & SPLICE_F_NONBLOCK) && (reading(in) || writing(out)))
CALL(ssize_t, vmsplice, (int fd, const struct iovec *v, size_t n, unsigned flags), (fd, v, n, flags),
     !(flags & SPLICE_F_NONBLOCK) && opened_as(fd, O_WRONLY) && writing(fd))
CALL(ssize_t, sendfile, (int out, int in, off_t *at, size_t n), (out, in, at, n), writing(out))

/* ---------------------------------------------------------------- sockets */

CALL_AS(int, connect, (int fd, const struct sockaddr *to, socklen_t n), (fd, to, n), connecting(fd, to))
CALL_AS(int, accept, (int fd, struct sockaddr *from, socklen_t *n), (fd, from, n), reading(fd))
CALL_AS(int, accept4, (int fd, struct sockaddr *from, socklen_t *n, int flags), (fd, from, n, flags),
        reading(fd))
CALL(ssize_t, recv, (int fd, void *buf, size_t n, int flags), (fd, buf, n, flags), receiving(fd, flags))
CALL_AS(ssize_t, recvfrom,
        (int fd, void *buf, size_t n, int flags, struct sockaddr *from, socklen_t *from_n),
        (fd, buf, n, flags, from, from_n), receiving(fd, flags))
CALL(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags), receiving(fd, flags))
CALL(ssize_t, send, (int fd, const void *buf, size_t n, int flags), (fd, buf, n, flags),
     sending(fd, flags))
CALL_AS(ssize_t, sendto,
        (int fd, const void *buf, size_t n, int flags, const struct sockaddr *to, socklen_t to_n),
        (fd, buf, n, flags, to, to_n), sending(fd, flags))
CALL(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags), sending(fd, flags))
CALL_AS(int, recvmmsg, (int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *limit),
        (fd, m, n, flags, limit), receiving(fd, flags))
CALL_AS(int, sendmmsg, (int fd, struct mmsghdr *m, unsigned n, int flags), (fd, m, n, flags),
        sending(fd, flags))

/* ---------------------------------------------------- several descriptors */

CALL(int, poll, (struct pollfd *fds, nfds_t n, int ms), (fds, n, ms), ms != 0 && polling(fds, n))
CALL(int, ppoll, (struct pollfd *fds, nfds_t n, const struct timespec *limit, const sigset_t *mask),
     (fds, n, limit, mask), is_time(limit) && polling(fds, n))
CALL(int, select, (int n, fd_set *in, fd_set *out, fd_set *ex, struct timeval *limit),
     (n, in, out, ex, limit), is_time_val(limit) && selecting(n, in, out, ex))
CALL(int, pselect,
     (int n, fd_set *in, fd_set *out, fd_set *ex, const struct timespec *limit, const sigset_t *mask),
     (n, in, out, ex, limit, mask), is_time(limit) && selecting(n, in, out, ex))
CALL(int, epoll_wait, (int fd, struct epoll_event *events, int n, int ms), (fd, events, n, ms),
     ms != 0 && no_event(fd))
CALL(int, epoll_pwait, (int fd, struct epoll_event *events, int n, int ms, const sigset_t *mask),
     (fd, events, n, ms, mask), ms != 0 && no_event(fd))

/* ----------------------------------------------------------- time, signals */

CALL(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left), true)
CALL(int, clock_nanosleep,
     (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),
     (clock, flags, time, left), true)
CALL(int, usleep, (useconds_t us), (us), us != 0)
CALL(unsigned, sleep, (unsigned s), (s), s != 0)
CALL(int, pause, (void), (), true)
CALL(int, sigsuspend, (const sigset_t *mask), (mask), true)
CALL(int, sigwait, (const sigset_t *set, int *sig), (set, sig), true)
CALL(int, sigwaitinfo, (const sigset_t *set, siginfo_t *info), (set, info), true)
CALL(int, sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *limit),
     (set, info, limit), is_time(limit))

/* -------------------------------------------------------- names, processes */

CALL(int, getaddrinfo,
     (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result),
     (node, service, hints, result), node && !(hints && hints->ai_flags & AI_NUMERICHOST))
CALL(int, getnameinfo,
     (const struct sockaddr *addr, socklen_t n, char *host, socklen_t host_n, char *service,
      socklen_t service_n, int flags),
     (addr, n, host, host_n, service, service_n, flags), host && !(flags & NI_NUMERICHOST))
CALL(struct hostent *, gethostbyname, (const char *name), (name), true)
CALL(struct hostent *, gethostbyname2, (const char *name, int family), (name, family), true)
CALL(struct hostent *, gethostbyaddr, (const void *addr, socklen_t n, int family), (addr, n, family),
     true)
CALL(int, gethostbyname_r,
     (const char *name, struct hostent *in, char *buf, size_t n, struct hostent **result, int *error),
     (name, in, buf, n, result, error), true)
CALL(int, gethostbyname2_r,
     (const char *name, int family, struct hostent *in, char *buf, size_t n, struct hostent **result,
      int *error),
     (name, family, in, buf, n, result, error), true)
CALL(int, gethostbyaddr_r,
     (const void *addr, socklen_t addr_n, int family, struct hostent *in, char *buf, size_t n,
      struct hostent **result, int *error),
     (addr, addr_n, family, in, buf, n, result, error), true)

CALL(pid_t, wait, (int *status), (status), waiting(-1, 0))
CALL(pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options),
     waiting(pid, options))
CALL(pid_t, wait3, (int *status, int options, struct rusage *usage), (status, options, usage),
     waiting(-1, options))
CALL(pid_t, wait4, (pid_t pid, int *status, int options, struct rusage *usage),
     (pid, status, options, usage), waiting(pid, options))
CALL(int, waitid, (idtype_t type, id_t id, siginfo_t *info, int options), (type, id, info, options),
     waiting_for(type, id, options))
CALL(int, system, (const char *command), (command), command != NULL)
CALL(int, pclose, (FILE *file), (file), true)

/* --------------------------------------------------------- other threads */

CALL(int, sem_wait, (sem_t *sem), (sem), sem_is_zero(sem))
CALL(int, sem_timedwait, (sem_t *sem, const struct timespec *until), (sem, until), sem_is_zero(sem))
CALL(int, pthread_cond_wait, (pthread_cond_t *cond, pthread_mutex_t *mutex), (cond, mutex), true)
CALL(int, pthread_cond_timedwait,
     (pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until),
     (cond, mutex, until), true)
CALL(int, pthread_join, (pthread_t thread, void **result), (thread, result), true)
CALL(int, pthread_timedjoin_np, (pthread_t thread, void **result, const struct timespec *until),
     (thread, result, until), true)
CALL(int, pthread_barrier_wait, (pthread_barrier_t *barrier), (barrier), true)
CALL(int, cnd_wait, (cnd_t *cond, mtx_t *mutex), (cond, mutex), true)
CALL(int, cnd_timedwait, (cnd_t *cond, mtx_t *mutex, const struct timespec *until),
     (cond, mutex, until), true)
CALL(int, thrd_join, (thrd_t thread, int *result), (thread, result), true)
CALL(int, thrd_sleep, (const struct timespec *time, struct timespec *left), (time, left), true)

/* ----------------------------------------------------- queues, semaphores */

CALL(ssize_t, mq_receive, (mqd_t q, char *buf, size_t n, unsigned *priority), (q, buf, n, priority),
     reading(q))
CALL(ssize_t, mq_timedreceive,
     (mqd_t q, char *buf, size_t n, unsigned *priority, const struct timespec *until),
     (q, buf, n, priority, until), reading(q))
CALL(int, mq_send, (mqd_t q, const char *buf, size_t n, unsigned priority), (q, buf, n, priority),
     writing(q))
CALL(int, mq_timedsend,
     (mqd_t q, const char *buf, size_t n, unsigned priority, const struct timespec *until),
     (q, buf, n, priority, until), writing(q))
CALL(ssize_t, msgrcv, (int q, void *m, size_t n, long type, int flags), (q, m, n, type, flags),
     !(flags & IPC_NOWAIT) && queue_is_empty(q, type))
CALL(int, msgsnd, (int q, const void *m, size_t n, int flags), (q, m, n, flags),
     !(flags & IPC_NOWAIT) && queue_is_full(q, n))
CALL(int, semop, (int id, struct sembuf *ops, size_t n), (id, ops, n), taking(id, ops, n))
CALL(int, semtimedop, (int id, struct sembuf *ops, size_t n, const struct timespec *limit),
     (id, ops, n, limit), is_time(limit) && taking(id, ops, n))
CALL(int, aio_suspend, (const struct aiocb *const list[], int n, const struct timespec *limit),
     (list, n, limit), is_time(limit))

/* ------------------------------------------------------------- glibc only */

#ifdef __GLIBC__

CALL(ssize_t, preadv2, (int fd, const struct iovec *v, int n, off_t at, int flags),
     (fd, v, n, at, flags), !(flags & RWF_NOWAIT) && (at == -1 ? reading(fd) : opened(fd, O_DIRECT)))
CALL(ssize_t, pwritev2, (int fd, const struct iovec *v, int n, off_t at, int flags),
     (fd, v, n, at, flags),
     !(flags & RWF_NOWAIT) && (at == -1 ? writing(fd) : opened(fd, O_DIRECT | O_DSYNC)))
CALL(int, sync_file_range, (int fd, off64_t at, off64_t n, unsigned flags), (fd, at, n, flags),
     flags & (SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WAIT_AFTER))
CALL_AS(int, epoll_pwait2,
        (int fd, struct epoll_event *events, int n, const struct timespec *limit, const sigset_t *mask),
        (fd, events, n, limit, mask), is_time(limit) && no_event(fd))
CALL_AS(int, sem_clockwait, (sem_t *sem, clockid_t clock, const struct timespec *until),
        (sem, clock, until), sem_is_zero(sem))
CALL_AS(int, pthread_cond_clockwait,
        (pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until),
        (cond, mutex, clock, until), true)
CALL_AS(int, pthread_clockjoin_np,
        (pthread_t thread, void **result, clockid_t clock, const struct timespec *until),
        (thread, result, clock, until), true)

/* The resolver: its state is a structure that only it looks into. */
CALL_AS(int, res_query, (const char *name, int class, int type, unsigned char *answer, int n),
        (name, class, type, answer, n), true)
CALL_AS(int, res_search, (const char *name, int class, int type, unsigned char *answer, int n),
        (name, class, type, answer, n), true)
CALL_AS(int, res_querydomain,
        (const char *name, const char *domain, int class, int type, unsigned char *answer, int n),
        (name, domain, class, type, answer, n), true)
CALL_AS(int, res_send, (const unsigned char *query, int query_n, unsigned char *answer, int n),
        (query, query_n, answer, n), true)
CALL_AS(int, res_nquery,
        (void *state, const char *name, int class, int type, unsigned char *answer, int n),
        (state, name, class, type, answer, n), true)
CALL_AS(int, res_nsearch,
        (void *state, const char *name, int class, int type, unsigned char *answer, int n),
        (state, name, class, type, answer, n), true)
CALL_AS(int, res_nquerydomain,
        (void *state, const char *name, const char *domain, int class, int type,
         unsigned char *answer, int n),
        (state, name, domain, class, type, answer, n), true)
CALL_AS(int, res_nsend,
        (void *state, const unsigned char *query, int query_n, unsigned char *answer, int n),
        (state, query, query_n, answer, n), true)

/* Names for large files: the same functions, where off_t has 64 bits. */
CALL(ssize_t, pread64, (int fd, void *buf, size_t n, off64_t at), (fd, buf, n, at),
     opened(fd, O_DIRECT))
CALL(ssize_t, pwrite64, (int fd, const void *buf, size_t n, off64_t at), (fd, buf, n, at),
     opened(fd, O_DIRECT | O_DSYNC))
CALL(ssize_t, preadv64, (int fd, const struct iovec *v, int n, off64_t at), (fd, v, n, at),
     opened(fd, O_DIRECT))
CALL(ssize_t, pwritev64, (int fd, const struct iovec *v, int n, off64_t at), (fd, v, n, at),
     opened(fd, O_DIRECT | O_DSYNC))
CALL(ssize_t, preadv64v2, (int fd, const struct iovec *v, int n, off64_t at, int flags),
     (fd, v, n, at, flags), !(flags & RWF_NOWAIT) && (at == -1 ? reading(fd) : opened(fd, O_DIRECT)))
CALL(ssize_t, pwritev64v2, (int fd, const struct iovec *v, int n, off64_t at, int flags),
     (fd, v, n, at, flags),
     !(flags & RWF_NOWAIT) && (at == -1 ? writing(fd) : opened(fd, O_DIRECT | O_DSYNC)))
CALL_AS(int, open64, (const char *path, int flags, mode_t mode), (path, flags, mode),
        opening(AT_FDCWD, path, flags))
CALL_AS(int, openat64, (int dir, const char *path, int flags, mode_t mode),
        (dir, path, flags, mode), opening(dir, path, flags))
CALL(int, creat64, (const char *path, mode_t mode), (path, mode), opening(AT_FDCWD, path, O_WRONLY))
CALL_AS(int, fcntl64, (int fd, int what, void *arg), (fd, what, arg), locking_record(fd, what, arg))
CALL(int, lockf64, (int fd, int what, off64_t n), (fd, what, n), locking_file(fd, what, n))
CALL(ssize_t, sendfile64, (int out, int in, off64_t *at, size_t n), (out, in, at, n), writing(out))
CALL_AS(int, aio_suspend64, (const void *list, int n, const struct timespec *limit),
        (list, n, limit), is_time(limit))

/* What _FORTIFY_SOURCE calls instead. */
CALL_AS(ssize_t, __read_chk, (int fd, void *buf, size_t n, size_t room), (fd, buf, n, room),
        n != 0 && reading(fd))
CALL_AS(ssize_t, __pread_chk, (int fd, void *buf, size_t n, off_t at, size_t room),
        (fd, buf, n, at, room), opened(fd, O_DIRECT))
CALL_AS(ssize_t, __pread64_chk, (int fd, void *buf, size_t n, off64_t at, size_t room),
        (fd, buf, n, at, room), opened(fd, O_DIRECT))
CALL_AS(ssize_t, __recv_chk, (int fd, void *buf, size_t n, size_t room, int flags),
        (fd, buf, n, room, flags), receiving(fd, flags))
CALL_AS(ssize_t, __recvfrom_chk,
        (int fd, void *buf, size_t n, size_t room, int flags, struct sockaddr *from, socklen_t *from_n),
        (fd, buf, n, room, flags, from, from_n), receiving(fd, flags))
CALL_AS(int, __poll_chk, (struct pollfd *fds, nfds_t n, int ms, size_t room), (fds, n, ms, room),
        ms != 0 && polling(fds, n))
CALL_AS(int, __ppoll_chk,
        (struct pollfd *fds, nfds_t n, const struct timespec *limit, const sigset_t *mask, size_t room),
        (fds, n, limit, mask, room), is_time(limit) && polling(fds, n))
CALL_AS(int, __open_2, (const char *path, int flags), (path, flags), opening(AT_FDCWD, path, flags))
CALL_AS(int, __open64_2, (const char *path, int flags), (path, flags), opening(AT_FDCWD, path, flags))
CALL_AS(int, __openat_2, (int dir, const char *path, int flags), (dir, path, flags),
        opening(dir, path, flags))
CALL_AS(int, __openat64_2, (int dir, const char *path, int flags), (dir, path, flags),
        opening(dir, path, flags))

/* glibc's second names, which some libraries call. */
CALL_AS(ssize_t, __read, (int fd, void *buf, size_t n), (fd, buf, n), n != 0 && reading(fd))
CALL_AS(ssize_t, __write, (int fd, const void *buf, size_t n), (fd, buf, n), n != 0 && writing(fd))
CALL_AS(ssize_t, __pread64, (int fd, void *buf, size_t n, off64_t at), (fd, buf, n, at),
        opened(fd, O_DIRECT))
CALL_AS(ssize_t, __pwrite64, (int fd, const void *buf, size_t n, off64_t at), (fd, buf, n, at),
        opened(fd, O_DIRECT | O_DSYNC))
CALL_AS(int, __open, (const char *path, int flags, mode_t mode), (path, flags, mode),
        opening(AT_FDCWD, path, flags))
CALL_AS(int, __open64, (const char *path, int flags, mode_t mode), (path, flags, mode),
        opening(AT_FDCWD, path, flags))
CALL_AS(int, __fcntl, (int fd, int what, void *arg), (fd, what, arg), locking_record(fd, what, arg))
CALL_AS(int, __connect, (int fd, const struct sockaddr *to, socklen_t n), (fd, to, n),
        connecting(fd, to))
CALL_AS(ssize_t, __send, (int fd, const void *buf, size_t n, int flags), (fd, buf, n, flags),
        sending(fd, flags))
CALL_AS(int, __poll, (struct pollfd *fds, nfds_t n, int ms), (fds, n, ms),
        ms != 0 && polling(fds, n))
CALL_AS(int, __select, (int n, fd_set *in, fd_set *out, fd_set *ex, struct timeval *limit),
        (n, in, out, ex, limit), is_time_val(limit) && selecting(n, in, out, ex))
CALL_AS(int, __nanosleep, (const struct timespec *time, struct timespec *left), (time, left), true)
CALL_AS(int, __sigsuspend, (const sigset_t *mask), (mask), true)
CALL_AS(pid_t, __wait, (int *status), (status), waiting(-1, 0))
CALL_AS(pid_t, __waitpid, (pid_t pid, int *status, int options), (pid, status, options),
        waiting(pid, options))

#endif
