/*
 * reach_memory.c - all memory of the process that may hold pointers, read safely.
 *
 * Plain threads run on while the world is stopped, and may unmap what is being read. So
 * the kernel copies memory (process_vm_readv), stops where nothing is mapped, and the
 * copy is scanned. If a sandbox forbids that call, /proc/self/mem does the same.
 *
 * Only present pages are read: reservations of terabytes are usual, and to read a page
 * that was never touched would make a page of zeroes and its page table. The kernel lists
 * the present pages (PAGEMAP_SCAN, Linux 6.7). Older kernels look each page up in
 * /proc/self/pagemap, and mappings larger than SPARSE_BYTES are skipped.
 *
 * Shared mappings of files are skipped: they are devices and rings as often as memory.
 * Shared memory without a file (/dev/zero, memfd) is read.
 */
#define _GNU_SOURCE
#include "profile/reach.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "platform/maps.h"
#include "platform/os.h"
#include "platform/raw_file.h"

#define BUF_BYTES MEMORY_BUF_BYTES
#define SPARSE_BYTES (64ull << 30)

/* ------------------------------------------------------------------- spans */

void spans_add(struct spans *s, const void *lo, const void *hi)
{
	if (lo < hi)
		bytes_add(&s->list, &(struct span){ (uintptr_t)lo, (uintptr_t)hi }, sizeof *s->at);
	s->at = (void *)s->list.at;
	s->n = s->list.n / sizeof *s->at;
}

/* To add a span may move the list. */
void spans_add_self(struct spans *s)
{
	const struct span *at;

	do {
		at = s->at;
		spans_add(s, s->list.at, s->list.at + s->list.size);
	} while (at != s->at && !s->list.failed);
}

/* A heap sort needs no memory and no stack. Rejected: qsort, which may call malloc. */
static void sift(struct span *a, size_t i, size_t n)
{
	struct span x = a[i];

	for (size_t k; (k = 2 * i + 1) < n; i = k) {
		if (k + 1 < n && a[k + 1].lo > a[k].lo)
			k++;
		if (a[k].lo <= x.lo)
			break;
		a[i] = a[k];
	}
	a[i] = x;
}

void spans_sort(struct spans *s)
{
	size_t n = 0;

	for (size_t i = s->n / 2; i-- > 0;)
		sift(s->at, i, s->n);
	for (size_t end = s->n; end-- > 1;) {
		struct span x = s->at[0];

		s->at[0] = s->at[end];
		s->at[end] = x;
		sift(s->at, 0, end);
	}
	for (size_t i = 0; i < s->n; i++) {
		if (n > 0 && s->at[i].lo <= s->at[n - 1].hi) {
			if (s->at[i].hi > s->at[n - 1].hi)
				s->at[n - 1].hi = s->at[i].hi;
		} else {
			s->at[n++] = s->at[i];
		}
	}
	s->n = n;
}

void spans_free(struct spans *s)
{
	bytes_free(&s->list);
	*s = (struct spans){ .n = 0 };
}

/* ----------------------------------------------------------------- reading */

/* As in linux/fs.h, which in some systems is older. */
struct page_region_ {
	uint64_t start, end, categories;
};
struct pm_scan_arg_ {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define PAGEMAP_SCAN_ _IOWR('f', 16, struct pm_scan_arg_)
#define PAGE_IS_PRESENT_ (1u << 3)
#define PAGE_IS_SWAPPED_ (1u << 4)

#define REGIONS 64

static long list_pages(const struct memory *m, struct span s, struct page_region_ *out,
                       uintptr_t *reached)
{
	struct pm_scan_arg_ arg = {
		.size = sizeof arg, .start = s.lo, .end = s.hi, .vec = (uintptr_t)out,
		.vec_len = REGIONS, .category_anyof_mask = PAGE_IS_PRESENT_ | PAGE_IS_SWAPPED_,
		.return_mask = PAGE_IS_PRESENT_,
	};
	long n = syscall(SYS_ioctl, m->pagemap, PAGEMAP_SCAN_, &arg);

	*reached = arg.walk_end;
	return n;
}

/* Copies memory from lo on. Returns the number of bytes; 0: none can be read there. */
static size_t copy_from(const struct memory *m, uintptr_t lo, size_t n)
{
	struct iovec to = { m->buf, n }, from = { (void *)lo, n };
	long got = syscall(SYS_process_vm_readv, m->pid, &to, 1, &from, 1, 0);
	int fd;

	if (got >= 0)
		return (size_t)got;
	if (*__errno_location() == EFAULT)
		return 0;
	fd = raw_open("/proc/self/mem");
	if (fd < 0)
		return 0;
	got = syscall(SYS_pread64, fd, m->buf, n, lo);
	raw_close(fd);
	return got > 0 ? (size_t)got : 0;
}

/* Without a pagemap every mapped page is read. False: the pagemap is only missing for
 * want of a descriptor. */
static bool open_pagemap(struct memory *m)
{
	struct page_region_ none[REGIONS];
	uintptr_t here, page = (uintptr_t)&here & ~(os_page_bytes - 1);

	m->pagemap = raw_open("/proc/self/pagemap");
	if (m->pagemap < 0 && raw_out_of_descriptors())
		return false;
	m->scan_works = m->pagemap >= 0 &&
	                list_pages(m, (struct span){ page, page + os_page_bytes }, none, &here) == 1;
	return true;
}

void memory_close(struct memory *m)
{
	if (m->pagemap >= 0)
		raw_close(m->pagemap);
	os_unmap(m->buf, BUF_BYTES);
}

bool memory_open(struct memory *m)
{
	uintptr_t here = 0;

	*m = (struct memory){ .pagemap = -1, .pid = getpid(), .buf = os_map(BUF_BYTES) };
	if (!m->buf)
		return false;
	if (open_pagemap(m) && copy_from(m, (uintptr_t)&here, sizeof here) == sizeof here)
		return true;
	memory_close(m);
	return false;
}

/* The first span that ends after addr. */
static size_t spans_from(const struct spans *s, uintptr_t addr)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (s->at[mid].hi <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static uintptr_t align_up(uintptr_t a) { return (a + sizeof a - 1) & ~(sizeof a - 1); }

/* Passes on what was copied from [lo, hi), except m->but. */
static void show(const struct memory *m, uintptr_t lo, uintptr_t hi, reach_words *fn, void *arg)
{
	uintptr_t at = lo;

	for (size_t i = m->but ? spans_from(m->but, lo) : 0;
	     m->but && i < m->but->n && m->but->at[i].lo < hi; i++) {
		uintptr_t end = m->but->at[i].lo & ~(sizeof end - 1);

		if (end > at)
			fn(arg, m->buf + (at - lo) / sizeof at, (end - at) / sizeof at);
		if (m->but->at[i].hi > at)
			at = align_up(m->but->at[i].hi);
	}
	if (hi > at)
		fn(arg, m->buf + (at - lo) / sizeof at, (hi - at) / sizeof at);
}

/* lo is aligned to a word. */
static void read_present(const struct memory *m, uintptr_t lo, uintptr_t hi, reach_words *fn,
                         void *arg)
{
	while (lo < hi) {
		size_t n = hi - lo < BUF_BYTES ? hi - lo : BUF_BYTES;
		size_t got = copy_from(m, lo, n) & ~(sizeof(uintptr_t) - 1);

		if (got > 0)
			show(m, lo, lo + got, fn, arg);
		if (got < n)	/* a hole: go on at the next page */
			got = (((lo + got) | (os_page_bytes - 1)) + 1) - lo;
		lo += got;
	}
}

static uintptr_t higher(uintptr_t a, uintptr_t b) { return a > b ? a : b; }
static uintptr_t lower(uintptr_t a, uintptr_t b) { return a < b ? a : b; }

static void scan_listed(const struct memory *m, struct span s, reach_words *fn, void *arg)
{
	struct span pages = { s.lo & ~(os_page_bytes - 1), (s.hi + os_page_bytes - 1) & ~(os_page_bytes - 1) };

	while (pages.lo < pages.hi) {
		struct page_region_ region[REGIONS];
		uintptr_t reached;
		long n = list_pages(m, pages, region, &reached);

		for (long i = 0; i < n; i++)
			read_present(m, higher(region[i].start, s.lo), lower(region[i].end, s.hi), fn, arg);
		if (n < 0 || reached <= pages.lo)
			return;
		pages.lo = reached;
	}
}

/* The pagemap has a word a page. Its two highest bits say: present, swapped. */
static void scan_looked_up(const struct memory *m, struct span s, reach_words *fn, void *arg)
{
	uint64_t entry[512];

	for (uintptr_t at = s.lo & ~(os_page_bytes - 1); at < s.hi;) {
		long n = syscall(SYS_pread64, m->pagemap, entry, sizeof entry,
		                 at / os_page_bytes * sizeof *entry) / (long)sizeof *entry;

		if (n <= 0)
			return;
		for (long i = 0; i < n && at < s.hi; i++, at += os_page_bytes)
			if (entry[i] >> 62)
				read_present(m, higher(at, s.lo), lower(at + os_page_bytes, s.hi), fn, arg);
	}
}

void memory_scan(const struct memory *m, struct span s, reach_words *fn, void *arg)
{
	s.lo = align_up(s.lo);
	if (s.lo >= s.hi)
		return;
	if (m->scan_works)
		scan_listed(m, s, fn, arg);
	else if (s.hi - s.lo > SPARSE_BYTES)
		return;
	else if (m->pagemap >= 0)
		scan_looked_up(m, s, fn, arg);
	else
		read_present(m, s.lo, s.hi, fn, arg);
}

/* ----------------------------------------------------------------- mappings */

static bool is_wanted(const struct maps_line *line, void *arg)
{
	struct spans *roots = arg;

	if (line->writable && (!line->shared || strncmp(line->path, "/dev/zero", 9) == 0 ||
	                       strncmp(line->path, "/memfd:", 7) == 0))
		spans_add(roots, (void *)line->start, (void *)line->end);
	return true;
}

/* A smaller gap is read, and not looked at: to skip it costs more than the copy. */
#define GAP_BYTES (64 << 10)

bool memory_scan_all(struct memory *m, const struct spans *but, reach_words *fn, void *arg)
{
	struct spans roots = { .n = 0 };
	bool listed = maps_each(is_wanted, &roots) && !roots.list.failed;

	m->but = but;
	for (size_t i = 0; i < roots.n; i++) {
		struct span s = roots.at[i];

		for (size_t j = spans_from(but, s.lo); j < but->n && but->at[j].lo < s.hi; j++) {
			if (but->at[j].hi - but->at[j].lo < GAP_BYTES)
				continue;
			if (but->at[j].lo > s.lo)
				memory_scan(m, (struct span){ s.lo, but->at[j].lo }, fn, arg);
			s.lo = higher(s.lo, but->at[j].hi);
		}
		memory_scan(m, s, fn, arg);
	}
	m->but = NULL;
	spans_free(&roots);
	return listed;
}
