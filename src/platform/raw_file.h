/*
 * raw_file.h - open, read, map and close for code that runs in signal handlers
 *
 * libc's functions are async-signal-safe too, but they are cancellation points: a
 * cancelled thread would end in the middle of our handler. These are the bare system
 * calls. They do set errno. (ThreadSanitizer follows descriptors by libc's calls: it has
 * to see all of them or none.)
 */
#ifndef GORO_RAW_FILE_H
#define GORO_RAW_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static inline int raw_open(const char *path)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
}

/* After a raw_open that failed. */
static inline bool raw_out_of_descriptors(void)
{
	return *__errno_location() == EMFILE || *__errno_location() == ENFILE;
}

static inline ssize_t raw_read(int fd, void *buf, size_t size)
{
	return syscall(SYS_read, fd, buf, size);
}

static inline int raw_stat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

/* Maps the first size bytes for reading; NULL: that fails. */
static inline void *raw_map(int fd, size_t size)
{
	long at = syscall(SYS_mmap, NULL, size, PROT_READ, MAP_PRIVATE, fd, 0L);

	return at == -1 ? NULL : (void *)at;
}

static inline void raw_close(int fd)
{
	syscall(SYS_close, fd);
}

#endif
