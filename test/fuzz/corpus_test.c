/*
 * corpus_test.c - what the fuzzers have kept, and what they once found, is read without a
 * fault.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fuzz.h"
#include "test.h"

/* Reads each file of corpus/NAME in memory of its own. */
static void read_all(const char *name, void (*fn)(const uint8_t *, size_t))
{
	char path[4096];
	struct dirent *e;
	struct stat st;
	DIR *d;
	int n = 0;

	snprintf(path, sizeof path, "%s/fuzz/corpus/%s", TEST_SOURCE_DIR, name);
	d = opendir(path);
	CHECK(d);
	while ((e = readdir(d))) {
		uint8_t *data;
		int fd;

		if (e->d_name[0] == '.')
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDONLY);
		CHECK(fd >= 0 && fstat(fd, &st) == 0);
		data = malloc((size_t)st.st_size + !st.st_size);
		CHECK_EQ(read(fd, data, (size_t)st.st_size), st.st_size);
		close(fd);
		fn(data, (size_t)st.st_size);
		free(data);
		n++;
	}
	closedir(d);
	CHECK(n > 0);
}

#define X(name) TEST(name) { read_all(#name, fuzz_##name); }
FUZZ_LIST(X)
#undef X
