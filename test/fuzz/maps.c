/* maps.c - the kernel's list of mappings. */
#include "platform/maps.h"

#include "platform/raw_file.h"
#include "fuzz.h"

static const uint8_t *list;
static size_t list_n;

static int list_open(const char *path)
{
	(void)path;
	return 0;
}

static ssize_t list_read(int fd, void *buf, size_t size)
{
	size_t n = size < list_n ? size : list_n;

	(void)fd;
	memcpy(buf, list, n);
	list += n;
	list_n -= n;
	return (ssize_t)n;
}

static void list_close(int fd)
{
	(void)fd;
}

#define raw_open  list_open
#define raw_read  list_read
#define raw_close list_close
#define maps_find fuzz_maps_find
#define maps_each fuzz_maps_each
bool fuzz_maps_find(uintptr_t addr, struct maps_file *out);
bool fuzz_maps_each(bool (*fn)(const struct maps_line *line, void *arg), void *arg);
#include "../../src/platform/maps.c"

static bool see(const struct maps_line *line, void *arg)
{
	(void)arg;
	if (strnlen(line->path, sizeof line->path) == sizeof line->path)
		abort();
	return true;
}

void fuzz_maps(const uint8_t *data, size_t n)
{
	struct maps_file f;

	if (n == 0)
		return;
	list = data, list_n = n;
	maps_each(see, NULL);
	list = data, list_n = n;
	if (maps_find(0x7f1234567890, &f) && strnlen(f.path, sizeof f.path) == sizeof f.path)
		abort();
}
