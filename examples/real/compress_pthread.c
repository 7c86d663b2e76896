/*
 * compress_pthread.c - compress.c with threads: see there what it does.
 *
 * What to look at: the blocks are a ring, in the order of the input. The reader, the
 * next worker and the writer each go round in it, and wait until the block before them
 * is in the state that they need: one mutex, and a condition for each state. Where
 * compress.c starts a goroutine for a block, here WORKERS threads look for blocks.
 */
#include "compress_block.h"
#include <pthread.h>

enum state { UNUSED, READ, TAKEN, COMPRESSED, STATES };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed[STATES];		/* to that state */
static struct slot {
	enum state state;
	struct block *block;
} *ring;
static int slots;
static unsigned next_to_compress;	/* guarded by the lock, as the states are */
static bool all_read;

static void set_state(struct slot *slot, enum state state)
{
	pthread_mutex_lock(&lock);
	slot->state = state;
	pthread_cond_signal(&changed[state]);
	pthread_mutex_unlock(&lock);
}

static void await_state(struct slot *slot, enum state state)
{
	pthread_mutex_lock(&lock);
	while (slot->state != state)
		pthread_cond_wait(&changed[state], &lock);
	pthread_mutex_unlock(&lock);
}

/* The next block that is read; NULL: there will be none. */
static struct slot *take(void)
{
	struct slot *slot;

	pthread_mutex_lock(&lock);
	while ((slot = &ring[next_to_compress % slots])->state != READ && !all_read)
		pthread_cond_wait(&changed[READ], &lock);
	if (slot->state == READ) {
		slot->state = TAKEN;
		next_to_compress++;
	} else {
		slot = NULL;
	}
	pthread_mutex_unlock(&lock);
	return slot;
}

static void *compress_all(void *nothing)
{
	struct slot *slot;

	while ((slot = take())) {
		block_compress(slot->block);
		set_state(slot, COMPRESSED);
	}
	return nothing;
}

/* Ends the process if the input cannot be read. */
static void read_all(void)
{
	struct block *block, *before = NULL;
	struct slot *slot;
	ssize_t n;

	for (int i = 0; !before || !before->last; i = (i + 1) % slots, before = block) {
		slot = &ring[i];
		await_state(slot, UNUSED);
		block = slot->block;
		block_follows(block, before);
		for (block->in_n = 0; block->in_n < BLOCK; block->in_n += (size_t)n) {
			n = read(STDIN_FILENO, block->in + block->in_n,
			         BLOCK - block->in_n);
			if (n < 0) {
				fail("stdin", errno);
				exit(1);
			}
			if (n == 0)
				break;
		}
		block->last = block->in_n < BLOCK;
		set_state(slot, READ);
	}
	pthread_mutex_lock(&lock);
	all_read = true;
	pthread_cond_broadcast(&changed[READ]);
	pthread_mutex_unlock(&lock);
}

/* Ends the process if they cannot be written. */
static void write_bytes(const unsigned char *bytes, size_t n)
{
	for (ssize_t written; n > 0; bytes += written, n -= (size_t)written)
		if ((written = write(STDOUT_FILENO, bytes, n)) < 0) {
			fail("stdout", errno);
			exit(1);
		}
}

static void *write_all(void *nothing)
{
	uLong crc = crc32(0, NULL, 0);
	unsigned long long size = 0;
	unsigned char trailer[8];
	struct block *block;
	bool last = false;

	write_bytes(gzip_header, sizeof gzip_header);
	for (int i = 0; !last; i = (i + 1) % slots) {
		await_state(&ring[i], COMPRESSED);
		block = ring[i].block;
		write_bytes(block->out, block->out_n);
		crc = crc32_combine(crc, block->crc, (z_off_t)block->in_n);
		size += block->in_n;
		last = block->last;
		set_state(&ring[i], UNUSED);
	}
	gzip_trailer(trailer, crc, size);
	write_bytes(trailer, sizeof trailer);
	return nothing;
}

static bool make_ring(int n)
{
	if (!(ring = calloc((size_t)n, sizeof *ring)))
		return false;
	while (slots < n && (ring[slots].block = block_make()))
		slots++;
	for (enum state state = 0; state < STATES; state++)
		pthread_cond_init(&changed[state], NULL);
	return slots == n;
}

static void free_ring(void)
{
	while (slots > 0)
		block_free(ring[--slots].block);
	free(ring);
}

static bool start_thread(pthread_t *thread, void *(*fn)(void *))
{
	int err = pthread_create(thread, NULL, fn, NULL);

	if (err)
		fail("threads", err);
	return err == 0;
}

int main(int argc, char **argv)
{
	pthread_t threads[1001];
	int n = 0;

	options.workers = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (!read_options(argc, argv))
		return 2;
	if (!make_ring(2 * options.workers + 2)) {
		fail("blocks", ENOMEM);
		return 1;
	}
	for (; n < options.workers; n++)
		if (!start_thread(&threads[n], compress_all))
			return 1;
	if (!start_thread(&threads[n++], write_all))
		return 1;
	read_all();
	while (n > 0)
		pthread_join(threads[--n], NULL);
	free_ring();
	return 0;
}
