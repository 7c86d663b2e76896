/*
 * file_map.c - reading what is cached from a mapping of the file.
 *
 * A pread of 4 KiB that is in the page cache but in no cache of the CPU's takes 1.4 us. Less
 * than half of it is the copy; the rest is the way to the page, through the system call, the
 * file and the tree of its pages, most of them misses. A mapping has the page where it is. So
 * a file that goro_open opened is mapped when the page cache has had what was asked for
 * FILE_CACHED_ENOUGH times in a row, and read from there:
 *
 *	ask for most lines of it;		they come during the system call
 *	fstat;
 *	copy, if the file has it all.
 *
 * Where others are about to run, who may want to read as well, it waits for these, and one of them asks for
 * all ("Questions" in fd_post.c). Then it is
 *
 *	wait; the one who asks for all also fetches the first line of each;
 *	copy, if the file has it all.
 *
 * Why this reads what pread(2) would
 *
 * How long the file is. The last page of a mapping is whole, whatever the file has of
 * it, so the length is asked for at each read, before the copy. The kernel's own read does the
 * same: a file that is cut short between that and the copy may be seen either way, there as here.
 *
 * Which file it is. fstat says what has the number now. While a file is mapped its inode
 * is not freed, so that no other can have its device and inode number. (One who waits does not keep
 * it mapped, but sees afterwards whether it was: by the mapping's count of uses.)
 *
 * What it has. Only on file systems whose mappings are the pages that read(2) copies from,
 * and which do not lock a file to read it: ext2 to 4, and tmpfs. (XFS never shows half of a write
 * to a read. With overlayfs a mapping may be of what the file was before the first write
 * to it. On network file systems a read may ask the server.) Not with O_DIRECT.
 *
 * That it can be read. A page that was cut off, or that the disk does not give back, is a
 * SIGBUS in the copy, and a wrong buffer a SIGSEGV. Our handlers (fault.c) see by the
 * program counter that it was the copy, which then fails, and the system call is made
 * after all. If the program has handlers of its own for either, nothing is mapped. (One that it
 * installs later has to expect the SIGBUS of a file that loses its end while it is read, as with
 * any mapping.)
 *
 * Unmapping
 *
 * Readers do not count themselves in the descriptor's word: that would be a twentieth of
 * the time. Each says in its M what it reads from, which is stable since a goroutine
 * stays on its M while it makes no call of ours, and then looks whether the mapping is
 * still the descriptor's. Who closes takes it from the descriptor, goes through a barrier on all
 * threads, and waits for the Ms that read from it; whoever comes later finds none. That is
 * waiting for a copy, or for a disk.
 *
 * A descriptor that was closed with close(2), which goro.h forbids, and is found to be another
 * file leaves its mapping behind.
 *
 * Costs
 *
 * A page that is not cached any more blocks the thread, as a system call would that was not
 * announced. That is noticed by the time it took and the faults that it counted, and RWF_NOWAIT
 * is for the next again (file.c).
 *
 * What is mapped and touched counts as resident, although it is only the page cache, and takes
 * 1/512 of its size for page tables. So all files together have at most 1/MEMORY_SHARE of the
 * machine's memory, and there are at most MAPS_MAX.
 *
 * mlockall(MCL_FUTURE) would bring all of it into memory: then nothing is mapped.
 *
 * GORO_DEBUG=nomap=1: never.
 *
 * Rejected: FIONREAD instead of fstat, 0.15 us less, since it does not say which file it is;
 * a lease (F_SETLEASE), which needs no system call at each read, but makes others wait who
 * want to write to the file; io_uring, where 64 reads by one system call take as long each as
 * by 64.
 */
#define _GNU_SOURCE
#include "file_map.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "copy.h"
#include "debug.h"
#include "fault.h"
#include "fd.h"
#include "linger.h"
#include "os.h"
#include "rt.h"
#include "runtime.h"
#include "syscall_raw.h"
#include "ticks.h"

#define EXT_MAGIC   0xef53	/* linux/magic.h */
#define TMPFS_MAGIC 0x01021994

/* Smaller ones are in the CPU's caches. */
#define FILE_BYTES_MIN (1 << 20)
#define MEMORY_SHARE   8
#define MAPS_MAX       64

/* Larger reads are all copying. */
#define READ_BYTES_MAX (64 << 10)

/* So much comes during the system call. Into the second cache: the first one waits for but few
 * lines at once, and who asks for more waits. (A page, with the copy: 0.83 us with 16 lines into
 * the first, 0.91 with 32; 0.80, 0.75 and 0.77 with 32, 48 and 64 into the second.) */
#define AHEAD_BYTES (48 * CACHE_LINE)

/* Constant while it is a descriptor's. */
struct file_map {
	uint32_t used;		/* atomic */
	uint32_t use;		/* which one; atomic */
	const char *at;
	size_t bytes;		/* more than the file has: it may grow */
	size_t charged;		/* to what all may have together */
	dev_t dev;
	ino_t ino;
};

static struct file_map slots[MAPS_MAX];
static size_t bytes_mapped;	/* of all files; atomic */
int file_maps;

/* ------------------------------------------------------------ what to expect */

static inline bool expected(const struct fd_more *more)
{
	/* The second: few wait unannounced, see file.c. */
	return load_relaxed(&more->cached) >= FILE_CACHED_ENOUGH &&
	       load_relaxed(&sched.taken) < FILE_CALLS_FEW;
}

bool file_expected(const struct fd *f)
{
	/* acquire: pairs with store_release in fd_more */
	const struct fd_more *more = load_acquire(&f->more);

	return more && expected(more);
}

static void map_it(struct fd *f, struct fd_more *more);

void file_found(struct fd *f, bool cached)
{
	struct fd_more *more = fd_more(f);
	uint32_t n;

	if (!more)
		return;
	n = load_relaxed(&more->cached);
	if (!cached) {
		store_relaxed(&more->cached, 0);
	} else if (n < FILE_CACHED_ENOUGH) {
		store_relaxed(&more->cached, n + 1);
		if (n + 1 == FILE_CACHED_ENOUGH)
			map_it(f, more);
	}
}

/* ------------------------------------------------------------------- reading */

static inline void fetch(const char *from, size_t n)
{
	for (size_t i = 0; i < n && i < AHEAD_BYTES; i += CACHE_LINE)
		__builtin_prefetch(from + i, 0, 2);
}

/* It is the one that is mapped, and has so many bytes. */
static bool has(const struct file_map *map, const struct fd_file *file, size_t bytes)
{
	return file->known && file->ino == map->ino && file->dev == map->dev &&
	       (size_t)file->bytes >= bytes;
}

static bool fits(const struct file_map *map, size_t n, size_t off)
{
	size_t bytes = load_relaxed(&map->bytes);

	return n != 0 && n <= READ_BYTES_MAX && off <= bytes && n <= bytes - off;
}

static bool copy_from(const struct file_map *map, struct fd_file *file, bool asked, void *buf,
                      size_t n, size_t off)
{
	if (!asked) {
		fetch(map->at + off, n);
		fd_ask(file);
	}
	return has(map, file, off + n) && copy_or_fail(buf, map->at + off, n);
}

/* Whether a read that took long had to wait for the disk, or only for a CPU. (Or something else
 * in this thread has since the last such read.) */
static __attribute__((noinline)) bool waited_for_disk(struct m *mp)
{
	struct rusage u;
	long faults;

	if (getrusage(RUSAGE_THREAD, &u) != 0)
		return true;
	faults = mp->major_faults;
	mp->major_faults = u.ru_majflt;
	return u.ru_majflt != faults;
}

static __attribute__((noinline)) bool read_mapped(int fd, struct fd_more *more, void *buf,
                                                  size_t n, off_t off)
{
	/* acquire: what it is; pairs with store_release in publish */
	struct file_map *map = load_acquire(&more->map);
	struct fd_file file;
	uint64_t since;
	struct m *mp;
	uint32_t use;
	bool asked, done;

	if (!map || !m_self() || !expected(more) || load_relaxed(&more->deadline[FD_READ]) != 0 ||
	    !fits(map, n, (size_t)off))
		return false;
	use = load_relaxed(&map->use);
	file.number = fd;
	file.fetch = load_relaxed(&map->at) + off;	/* or anywhere else: it is not read there */
	asked = fd_post_question(&file);
	since = ticks_now();
	mp = m_self();
	store_relaxed(&mp->reads_from, map);
	compiler_barrier();	/* the other half is the membarrier in file_map_end */
	linger();
	/* acquire: what it is; pairs with store_release in publish. If it is in the same use
	 * it was so when it was asked for. */
	done = load_acquire(&more->map) == map && load_relaxed(&map->use) == use &&
	       copy_from(map, &file, asked, buf, n, (size_t)off);
	/* release: we are done with it; pairs with load_acquire in is_read_from */
	store_release(&mp->reads_from, NULL);
	if (unlikely(ticks_now() - since > ticks_long()) && waited_for_disk(mp))
		store_relaxed(&more->cached, 0);
	return done;
}

bool file_map_read(int fd, void *buf, size_t n, off_t off)
{
	struct fd *f = fd_known(fd);
	/* acquire: pairs with store_release in fd_more */
	struct fd_more *more = f ? load_acquire(&f->more) : NULL;

	return more && load_relaxed(&more->map) && read_mapped(fd, more, buf, n, off);
}

/* ----------------------------------------------------------------- unmapping */

static bool is_read_from(const struct file_map *map)
{
	for (struct m *mp = load_acquire(&sched.all_m); mp; mp = mp->all_link)
		if (load_acquire(&mp->reads_from) == map)
			return true;
	return false;
}

struct file_map *file_map_take(struct fd *f)
{
	struct file_map *map = f->more ? f->more->map : NULL;

	if (map)
		store_relaxed(&f->more->map, NULL);
	return map;
}

static void uncharge(const struct file_map *map)
{
	fetch_add_relaxed(&bytes_mapped, -map->charged);
	fetch_add_relaxed(&file_maps, -1);
}

static void end(struct file_map *map)
{
	munmap((void *)(uintptr_t)map->at, map->bytes);
	uncharge(map);
	store_relaxed(&map->use, map->use + 1);
	/* release: it is over; pairs with cas_acquire in slot_get */
	store_release(&map->used, 0);
}

void file_map_end(struct file_map *map)
{
	if (likely(!map))
		return;
	os_membarrier();
	for (int i = 0; is_read_from(map); i++)
		os_relax(i);
	end(map);
}

/* ------------------------------------------------------------------- mapping */

static bool is_fit(int fd, struct stat *st)
{
	struct statfs fs;
	int flags = fcntl(fd, F_GETFL);

	return fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_size >= FILE_BYTES_MIN &&
	       fstatfs(fd, &fs) == 0 && (fs.f_type == EXT_MAGIC || fs.f_type == TMPFS_MAGIC) &&
	       flags >= 0 && !(flags & O_DIRECT);
}

/* Whether new mappings are locked in memory only a try tells. */
static bool locks_mappings(void)
{
	unsigned char in;
	void *p = mmap(NULL, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool yes;

	if (p == MAP_FAILED)
		return true;
	yes = mincore(p, 1, &in) != 0 || in & 1;	/* nobody has touched it */
	munmap(p, 1);
	return yes;
}

/* Its part of what all may have; false: there is not so much left. */
static bool charge(struct file_map *map)
{
	struct sysinfo si;
	size_t all = fetch_add_relaxed(&bytes_mapped, map->charged) + map->charged;

	fetch_add_relaxed(&file_maps, 1);
	if (sysinfo(&si) == 0 && all / si.mem_unit <= si.totalram / MEMORY_SHARE)
		return true;
	uncharge(map);
	return false;
}

static struct file_map *slot_get(void)
{
	for (int i = 0; i < MAPS_MAX; i++) {
		uint32_t no = 0;

		/* acquire: nobody uses it any more; pairs with store_release in end */
		if (cas_acquire(&slots[i].used, &no, 1))
			return &slots[i];
	}
	return NULL;
}

static bool map_file(struct file_map *map, int fd, const struct stat *st)
{
	store_relaxed(&map->bytes, (size_t)st->st_size + (size_t)st->st_size / 4);
	map->charged = (size_t)st->st_size;
	map->dev = st->st_dev;
	map->ino = st->st_ino;
	if (!charge(map))
		return false;
	store_relaxed(&map->at, mmap(NULL, map->bytes, PROT_READ, MAP_SHARED, fd, 0));
	if (map->at != MAP_FAILED)
		return true;
	uncharge(map);
	return false;
}

/* False: there is one, or the file is being closed. */
static bool publish(struct fd *f, struct fd_more *more, struct file_map *map)
{
	struct m *mp = rt_enter();
	bool yes;

	lock_acquire(&f->lock);
	yes = !more->map && !fd_is_closed(f);
	if (yes)
		/* release: what it is; pairs with load_acquire in read_mapped */
		store_release(&more->map, map);
	lock_release(&f->lock);
	rt_exit(mp);
	return yes;
}

static void map_it(struct fd *f, struct fd_more *more)
{
	struct file_map *map;
	struct stat st;

	if (debug.nomap || !os_membarrier_works || load_relaxed(&more->map) || !load_relaxed(&f->own) ||
	    !fault_is_ours(SIGBUS) || !fault_is_ours(SIGSEGV) || !is_fit(f->number, &st) ||
	    locks_mappings() || !(map = slot_get()))
		return;
	if (!map_file(map, f->number, &st))
		store_release(&map->used, 0);
	else if (!publish(f, more, map))
		end(map);	/* nobody has seen it */
}
