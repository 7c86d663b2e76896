/*
 * cpus.c - how many processors this process may use: the default of GOMAXPROCS.
 *
 * The rule
 *
 * As Go since 1.25, the smaller of
 *   - the CPUs in the affinity mask, which cpusets are already part of, and
 *   - the cgroup's CPU quota: quota / period, rounded up, and at least 2.
 * Rounded up, because a thread too few leaves paid-for time unused while one
 * too many only meets the throttle. At least 2, so that one busy goroutine
 * does not stop all others until it is preempted.
 *
 * A quota binds everything below the cgroup it is set on. Go reads only the
 * cgroup the process is in; here the ancestors count too, as far as they can
 * be seen. The smallest of the rounded is the rounded smallest, so whole
 * numbers suffice.
 *
 * Finding the files
 *
 * /proc/self/cgroup says which cgroup we are in, /proc/self/mountinfo where
 * cgroup file systems can be seen. The cpu controller is either in a v1
 * hierarchy or in v2, never in both; so a v1 line that names "cpu" wins, and
 * in a hybrid setup the v2 line beside it has nothing to say about the CPU.
 *
 * Both files give paths as seen from our cgroup namespace, so they can be
 * compared. A mount shows the part of the hierarchy below its root:
 *
 *   cgroup     mount root   at                directory to start from
 *   /a/b       /            /sys/fs/cgroup    /sys/fs/cgroup/a/b
 *   /a/b       /a           /mnt              /mnt/b
 *   /          /..          /sys/fs/cgroup    /sys/fs/cgroup (1)
 *   /../x      /            /sys/fs/cgroup    none (2)
 *
 * (1) The mount is from outside our namespace. The names in between are hidden
 *     from us, but its root is an ancestor of ours and its quota binds us.
 * (2) We were moved out of our namespace, and the mount shows others' cgroups.
 *
 * Nearly always the first row holds, with the mount at the usual place, so that is tried
 * first: a directory of our cgroup's name there, in a file system of the right kind.
 *
 * Of several mounts the one that shows the most of our ancestors is taken.
 * From the directory found, we walk up to the mount point. A level whose files
 * are missing sets no quota: v2's root never has them, and a v2 cgroup whose
 * parent has not enabled the controller does not. That also takes care of
 * "/a/b (deleted)": there is no such directory, and its parents still count.
 *
 * Following changes
 *
 * The files stay open, and every question reads them anew by pread: a changed
 * quota is seen at once, unless the program has closed them. A process moved to another cgroup is not, as in Go.
 * Of a nesting deeper than CPUS_LEVELS_MAX, the outermost levels are read once,
 * when opened: ignoring them would be wrong at once, not following them is
 * wrong only if they change, and the nearer a quota the likelier it is changed.
 *
 * Rejected: looking for the cgroup at every question. It would follow a move,
 * but mountinfo is long (100 KB on a machine with many containers), and the
 * kernel holds a lock that mounting needs while it writes it.
 *
 * The monitor thread asks, and it must not take a libc lock: a preempted
 * goroutine may hold it. So no stdio, no malloc; only system calls, and text
 * streamed through a buffer on the stack. What does not parse counts as absent.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cpus.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "atomic.h"
#include "os.h"
#include "own_fd.h"

/* Ten times what the largest kernel configuration has. One mask of 8 KiB is
 * simpler than growing one without an allocator. */
#define AFFINITY_MAX_CPUS 65536
#define AFFINITY_USUAL_CPUS 8192

/* Two 64-bit numbers, a space and a newline take 42 bytes. */
#define QUOTA_FILE_BYTES  64

/*
 * Text files, streamed
 *
 * A line is read field by field into buffers of the caller's, so its length
 * does not matter. Asking for a field after the line's end gives an empty one,
 * and so does a field that is too long or badly escaped; nothing that is looked
 * for here is empty. So a parser reads a line straight through, and a malformed
 * line fails to match.
 */
struct text {
	int fd;
	bool escaped;   /* \040 stands for a space, as in mountinfo */
	bool line_over; /* the current line has no more fields */
	size_t at, end; /* unread part of buf */
	char buf[1024];
};

/* The next byte, left where it is, or -1 at the end. An unreadable file is
 * an empty one. */
static int text_peek(struct text *t)
{
	if (t->at == t->end) {
		ssize_t n = read(t->fd, t->buf, sizeof t->buf);

		t->at = 0;
		t->end = n > 0 ? (size_t)n : 0;
	}
	return t->at < t->end ? (unsigned char)t->buf[t->at] : -1;
}

/* The next byte of the line, or -1, once, at its end. */
static int text_byte(struct text *t)
{
	int c = text_peek(t);

	if (c >= 0)
		t->at++;
	if (c >= 0 && c != '\n')
		return c;
	t->line_over = true;
	return -1;
}

/* The byte that three octal digits stand for, or -1. A byte that is no digit
 * stays unread: it may end the field. */
static int text_octal(struct text *t)
{
	int value = 0;

	for (int i = 0; i < 3; i++) {
		int c = text_peek(t);

		if (c < '0' || c > '7')
			return -1;
		t->at++;
		value = value * 8 + (c - '0');
	}
	return value <= 0xff ? value : -1;
}

/* Goes to the next line. False where there is none. */
static bool text_next_line(struct text *t)
{
	while (!t->line_over)
		text_byte(t);
	t->line_over = text_peek(t) < 0;
	return !t->line_over;
}

/* Reads up to one of seps, or the line's end, into out. Returns the separator,
 * or 0 at the line's end. */
static char text_field(struct text *t, const char *seps, char *out, size_t size)
{
	size_t n = 0;
	bool bad = false;
	char sep = 0;

	while (!t->line_over && !sep) {
		int c = text_byte(t);

		if (c < 0)
			break;
		if (c > 0 && strchr(seps, c)) {
			sep = (char)c;
			break;
		}
		if (c == '\\' && t->escaped)
			c = text_octal(t);
		if (c <= 0 || n + 1 >= size)
			bad = true;
		else
			out[n++] = (char)c;
	}
	out[bad ? 0 : n] = '\0';
	return sep;
}

static void text_skip_fields(struct text *t, int n)
{
	char none[1];

	while (n-- > 0)
		text_field(t, " ", none, sizeof none);
}

/* Whether the comma-separated list up to end (or the line's end) has "cpu". */
static bool text_list_has_cpu(struct text *t, char end)
{
	const char seps[] = {',', end, '\0'};
	char item[8], sep;
	bool found = false;

	do {
		sep = text_field(t, seps, item, sizeof item);
		found |= strcmp(item, "cpu") == 0;
	} while (sep == ',');
	return found;
}

/* Writes a and b behind one another. False where they do not fit. */
static bool path_join(char *out, size_t size, const char *a, const char *b)
{
	size_t alen = strlen(a), blen = strlen(b);

	if (alen + blen >= size)
		return false;
	memcpy(out, a, alen);
	memcpy(out + alen, b, blen + 1);
	return true;
}

/* A descriptor of the file at dir followed by name, which begins with a slash, or -1. dir may
 * be empty. Not by a path in one piece, which needs room: see struct search. */
static int path_open(const char *dir, const char *name)
{
	int at, fd;

	if (!*dir)
		return open(name, O_RDONLY | O_CLOEXEC);
	at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return -1;
	fd = openat(at, name + 1, O_RDONLY | O_CLOEXEC);
	close(at);
	return fd;
}

/* How many ".." path begins with: how far above our namespace's root it is. */
static int path_ascents(const char *path)
{
	int n = 0;

	while (strncmp(path, "/..", 3) == 0 && (path[3] == '/' || path[3] == '\0')) {
		path += 3;
		n++;
	}
	return n;
}

/* The part of path below root, "" where they are the same; NULL where path is
 * not below root, or not by what the names tell. Both begin with a slash. */
static const char *path_below(const char *path, const char *root)
{
	size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, n) != 0)
		return NULL;
	path += n;
	if (*path == '\0' || strcmp(path, "/") == 0)
		return "";
	return *path == '/' && path_ascents(path) == 0 ? path : NULL;
}

/* Whether root is a nameless ancestor of path: nothing but "..", and more of
 * them than path begins with. */
static bool path_is_above(const char *path, const char *root)
{
	int n = path_ascents(root);
	const char *rest = root + n * (ptrdiff_t)strlen("/..");

	return *rest == '\0' && n > path_ascents(path);
}

enum cgroup_version { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

/* Which cgroup we are in, and the best mount found to see it through. */
struct place {
	enum cgroup_version version;
	char path[PATH_MAX]; /* in the hierarchy that has the cpu controller */
	int score; /* how much of our ancestry the mount shows; -1 is no mount */
	char mount[PATH_MAX]; /* its mount point */
	const char *below;    /* the cgroup's directory below it, as in path */
};

/* Reads /proc/self/cgroup, whose lines are ID:CONTROLLER,CONTROLLER:PATH. The
 * path may have colons of its own and is not escaped. */
static void place_find_path(struct place *pl, const char *root)
{
	struct text t = {.fd = path_open(root, "/proc/self/cgroup"), .line_over = true};

	while (pl->version != CGROUP_V1 && text_next_line(&t)) {
		char id[8];

		text_field(&t, ":", id, sizeof id);
		bool v1 = text_list_has_cpu(&t, ':');
		if (!v1 && strcmp(id, "0") != 0)
			continue;
		text_field(&t, "", pl->path, sizeof pl->path);
		pl->version = pl->path[0] != '/' ? CGROUP_NONE
			      : v1               ? CGROUP_V1
						 : CGROUP_V2;
	}
	if (t.fd >= 0)
		close(t.fd);
}

/* Takes a mount of our hierarchy, if it shows more of our ancestors than the
 * one we have; least of all one whose own root is the only one it shows. */
static void place_offer_mount(struct place *pl, const char *mount_root, const char *mount)
{
	const char *below = path_below(pl->path, mount_root);
	int score = 0;

	if (below)
		score = 1 + (int)strlen(below);
	else if (!path_is_above(pl->path, mount_root))
		return;
	if (score <= pl->score)
		return;
	pl->score = score;
	pl->below = below ? below : "";
	path_join(pl->mount, sizeof pl->mount, mount, "");
}

/* Reads one line of mountinfo:
 *   ID PARENT MAJOR:MINOR ROOT MOUNT OPTIONS [TAG...] - TYPE SOURCE SUPEROPTIONS
 * SOURCE may be empty. A mount on the same mount point hides what was there. */
static void place_read_mount(struct place *pl, struct text *t)
{
	char root[PATH_MAX], mount[PATH_MAX], word[16];
	bool ours;

	text_skip_fields(t, 3);
	text_field(t, " ", root, sizeof root);
	text_field(t, " ", mount, sizeof mount);
	do
		text_field(t, " ", word, sizeof word);
	while (!t->line_over && strcmp(word, "-") != 0);
	text_field(t, " ", word, sizeof word);
	text_skip_fields(t, 1);

	if (root[0] != '/' || mount[0] != '/' || word[0] == '\0')
		return;
	if (pl->score >= 0 && strcmp(mount, pl->mount) == 0)
		pl->score = -1;
	if (pl->version == CGROUP_V2)
		ours = strcmp(word, "cgroup2") == 0;
	else
		ours = strcmp(word, "cgroup") == 0 && text_list_has_cpu(t, ' ');
	if (ours)
		place_offer_mount(pl, root, mount);
}

static void place_find_mount(struct place *pl, const char *root)
{
	struct text t = {.fd = path_open(root, "/proc/self/mountinfo"),
			 .escaped = true,
			 .line_over = true};

	pl->score = -1;
	while (text_next_line(&t))
		place_read_mount(pl, &t);
	if (t.fd >= 0)
		close(t.fd);
}

/* The decimal number at *s, which must end at the byte `end` or with the text;
 * moves *s behind both. -1 where there is none, or one too large, and so for
 * what the kernel writes where there is no quota: "max" in v2, "-1" in v1. */
static long long quota_number(const char **s, char end)
{
	long long value = 0;
	const char *p = *s;

	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *p - '0', &value))
			return -1;
	}
	if (p == *s || (*p != end && *p != '\0'))
		return -1;
	*s = *p ? p + 1 : p;
	return value;
}

/* Reads a whole quota file. False where it is not short text. */
static bool quota_read(int fd, char out[QUOTA_FILE_BYTES])
{
	ssize_t n = pread(fd, out, QUOTA_FILE_BYTES, 0);

	if (n <= 0 || n == QUOTA_FILE_BYTES)
		return false;
	out[n] = '\0';
	return true;
}

/* CPUs that one cgroup's quota allows, rounded up, or CPUS_NO_LIMIT. */
static int level_read(const struct cpus_level *lv)
{
	char text[QUOTA_FILE_BYTES];
	const char *s = text;
	long long quota, period, limit;

	if (!quota_read(lv->quota_fd, text))
		return CPUS_NO_LIMIT;
	quota = quota_number(&s, lv->period_fd < 0 ? ' ' : '\n');
	if (lv->period_fd >= 0) {
		if (!quota_read(lv->period_fd, text))
			return CPUS_NO_LIMIT;
		s = text;
	}
	period = quota_number(&s, '\n');
	if (quota < 0 || period <= 0)
		return CPUS_NO_LIMIT;
	limit = quota / period + (quota % period != 0);
	return limit < CPUS_NO_LIMIT ? (int)limit : CPUS_NO_LIMIT;
}

static int level_limit(struct cpus_level *lv)
{
	if (own_fd_is(lv->quota_fd, OWN_FD_QUOTA) &&
	    (lv->period_fd < 0 || own_fd_is(lv->period_fd, OWN_FD_QUOTA)))
		store_relaxed(&lv->limit, level_read(lv));
	return load_relaxed(&lv->limit);
}

static void level_close(struct cpus_level *lv)
{
	own_fd_close(&lv->quota_fd, OWN_FD_QUOTA);
	own_fd_close(&lv->period_fd, OWN_FD_QUOTA);
}

static int quota_open(const char *dir, const char *name)
{
	return own_fd_take(path_open(dir, name), OWN_FD_QUOTA);
}

/* False where the cgroup at dir does not have the files. */
static bool level_open(struct cpus_level *lv, enum cgroup_version version,
		       const char *dir)
{
	*lv = (struct cpus_level){ .period_fd = -1, .limit = CPUS_NO_LIMIT };
	if (version == CGROUP_V2) {
		lv->quota_fd = quota_open(dir, "/cpu.max");
		return lv->quota_fd >= 0;
	}
	lv->quota_fd = quota_open(dir, "/cpu.cfs_quota_us");
	if (lv->quota_fd < 0)
		return false;
	lv->period_fd = quota_open(dir, "/cpu.cfs_period_us");
	if (lv->period_fd < 0)
		level_close(lv);
	return lv->period_fd >= 0;
}

/* Keeps the files of the cgroup at dir, if it has them and there is room; else
 * what they say now. */
static void cgroup_add_level(struct cpus_cgroup *cg, enum cgroup_version version,
			     const char *dir)
{
	struct cpus_level lv;
	int limit;

	if (!level_open(&lv, version, dir))
		return;
	if (cg->nlevels < CPUS_LEVELS_MAX) {
		cg->level[cg->nlevels++] = lv;
		return;
	}
	limit = level_limit(&lv);
	if (limit < cg->outer_limit)
		cg->outer_limit = limit;
	level_close(&lv);
}

/* Where they are on nearly every machine, and in containers: a look at one place is
 * 10 us, mountinfo 70 even if it is short. */
static bool place_is_usual(struct place *pl, const char *root, char dir[2 * PATH_MAX])
{
	const char *mount = pl->version == CGROUP_V2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
	struct statfs fs;

	if (path_ascents(pl->path) > 0 || !path_join(dir, PATH_MAX, root, mount))
		return false;
	pl->below = strcmp(pl->path, "/") == 0 ? "" : pl->path;
	if (!path_join(dir + strlen(dir), PATH_MAX, pl->below, "") || statfs(dir, &fs) != 0 ||
	    fs.f_type != (pl->version == CGROUP_V2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC))
		return false;
	pl->score = 0;
	return path_join(pl->mount, sizeof pl->mount, mount, "");
}

/* Too large for the stack of the thread that starts the runtime, which may have 16 KiB. */
struct search {
	struct place place;
	char dir[2 * PATH_MAX]; /* room to walk up from a path too long to open */
};

static void search_cgroup(struct cpus_cgroup *cg, const char *root, struct search *s)
{
	struct place *pl = &s->place;
	char *dir = s->dir;
	size_t top;

	place_find_path(pl, root);
	if (pl->version == CGROUP_NONE)
		return;
	if (!place_is_usual(pl, root, dir))
		place_find_mount(pl, root);
	if (pl->score < 0 || !path_join(dir, PATH_MAX, root, pl->mount))
		return;
	top = strlen(dir);
	path_join(dir + top, sizeof s->dir - top, pl->below, "");

	cgroup_add_level(cg, pl->version, dir);
	while (strlen(dir) > top) {
		*strrchr(dir, '/') = '\0';
		cgroup_add_level(cg, pl->version, dir);
	}
}

void cpus_cgroup_open(struct cpus_cgroup *cg, const char *root)
{
	struct search *s = os_map(sizeof *s);

	cg->nlevels = 0;
	cg->outer_limit = CPUS_NO_LIMIT;
	if (!s)
		return;
	s->place.version = CGROUP_NONE;
	search_cgroup(cg, root, s);
	os_unmap(s, sizeof *s);
}

void cpus_cgroup_close(struct cpus_cgroup *cg)
{
	while (cg->nlevels > 0)
		level_close(&cg->level[--cg->nlevels]);
	cg->outer_limit = CPUS_NO_LIMIT;
}

int cpus_cgroup_limit(struct cpus_cgroup *cg)
{
	int least = cg->outer_limit;

	for (int i = 0; i < cg->nlevels; i++) {
		int limit = level_limit(&cg->level[i]);

		if (limit < least)
			least = limit;
	}
	return least;
}

int cpus_clip(int cpus, int limit)
{
	if (limit < 2)
		limit = 2;
	return limit < cpus ? limit : cpus;
}

/* By the system call itself, which tells how many bytes it wrote: CPUs, or 0 where the mask
 * has not enough room. */
static int affinity_within(unsigned long *mask, size_t size)
{
	long bytes = syscall(SYS_sched_getaffinity, 0, size, mask);
	int cpus = 0;

	for (long i = 0; i < bytes / (long)sizeof mask[0]; i++)
		cpus += __builtin_popcountl(mask[i]);
	return cpus;
}

/* On few machines; see struct search. */
static __attribute__((noinline)) int affinity_of_many(void)
{
	unsigned long mask[AFFINITY_MAX_CPUS / 8 / sizeof(unsigned long)];

	return affinity_within(mask, sizeof mask);
}

/* Of the calling thread and not of the main one: a program may pin its main thread
 * apart after ours have inherited its mask. */
int cpus_affinity(void)
{
	unsigned long mask[AFFINITY_USUAL_CPUS / 8 / sizeof(unsigned long)];
	int cpus = affinity_within(mask, sizeof mask);

	if (cpus == 0)
		cpus = affinity_of_many();
	return cpus > 0 ? cpus : 1;
}

/* Written by cpus_open() only. */
static struct cpus_cgroup own_cgroup = {.outer_limit = CPUS_NO_LIMIT};

void cpus_open(void)
{
	cpus_cgroup_close(&own_cgroup);
	cpus_cgroup_open(&own_cgroup, "");
}

int cpus_default(void)
{
	return cpus_clip(cpus_affinity(), cpus_cgroup_limit(&own_cgroup));
}

int cpus_parse_maxprocs(const char *s, int max)
{
	int value = 0;

	if (!s || !*s)
		return 0;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return 0;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *s - '0', &value))
			value = max;
		if (value > max)
			value = max;
	}
	return value;
}
