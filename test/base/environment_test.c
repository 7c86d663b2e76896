/*
 * environment_test.c - what the environment may ask of a program, and of which one.
 */
#include <errno.h>
#include <fcntl.h>
#include <goro.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"
#include "test.h"

static char directory[] = "/tmp/goro-environment-XXXXXX", path[80];

/* A file of the test's own, for name to point to. */
static void point_to_file(const char *name, const char *file)
{
	if (!path[0])
		CHECK(mkdtemp(directory));
	snprintf(path, sizeof path, "%s/%s", directory, file);
	setenv(name, path, 1);
}

static void write_file(const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static const char *read_file(size_t *n)
{
	static char text[1 << 20];
	int fd = open(path, O_RDONLY);
	ssize_t got = read(fd, text, sizeof text - 1);

	CHECK(fd >= 0 && got >= 0);
	close(fd);
	*n = (size_t)got;
	text[got] = '\0';
	return text;
}

static void remove_files(void)
{
	char command[100];

	snprintf(command, sizeof command, "rm -rf %s", directory);
	CHECK_EQ(system(command), 0);
}

/* ------------------------------------------------------------ privileged programs */

static void tells_what_it_is(void)
{
	printf("secure %d procs %d\n", getauxval(AT_SECURE) != 0, goro_gomaxprocs(0));
}

/* With another real than effective user: as a set-uid program is run. */
static void run_privileged(void)
{
	if (setresuid(65534, 0, 0) != 0)
		SKIP("needs root");
	run_anew(tells_what_it_is);
	CHECK_EQ(setresuid(0, 0, 0), 0);
	if (!strstr(o.out, "secure 1"))
		SKIP("this kernel does not call it privileged");
}

static void check_unwritten(const char *name)
{
	size_t n;

	point_to_file(name, "precious");
	write_file("precious");
	run_privileged();
	CHECK_STR(read_file(&n), "precious");
	CHECK_STR(o.err, "");
	unsetenv(name);
	remove_files();
}

TEST(a_privileged_program_writes_no_trace)
{
	check_unwritten("GORO_TRACE");
}

TEST(a_privileged_program_writes_no_profile)
{
	check_unwritten("GORO_CPUPROFILE");
}

TEST(a_privileged_program_starts_no_server)
{
	setenv("GORO_DEBUG_SERVE", "nowhere", 1);	/* or it would say so */
	run_privileged();
	CHECK_STR(o.err, "");
}

TEST(a_privileged_program_keeps_its_settings)
{
	setenv("GORO_MAXPROCS", "13", 1);
	setenv("GORO_STACK", "16k", 1);
	setenv("GORO_DEBUG", "schedtrace=1,noguard=2", 1);
	setenv("GORO_TRACEBACK", "none", 1);
	run_privileged();
	CHECK(!strstr(o.out, "procs 13"));
	CHECK_STR(o.err, "");
}

/* ------------------------------------------------------------ files of several */

static void does_nothing(void)
{
}

static void has_a_child(void)
{
	struct test_output child_o;

	test_run_anew(child_anew, does_nothing, &child_o);
	printf("%s", child_o.err);
}

static void check_parent_keeps(const char *name, const char *begins)
{
	char want[200];
	size_t n;

	point_to_file(name, "out");
	snprintf(want, sizeof want, "goro: %s=%s: another process writes it", name, path);
	run_anew(has_a_child);
	CHECK_EQ(o.status, 0);
	CHECK_CONTAINS(o.out, want);
	CHECK(memcmp(read_file(&n), begins, 2) == 0);
	CHECK_STR(o.err, "");

	/* No process has it any more: the next program may. */
	write_file("old old old");
	run_anew(does_nothing);
	CHECK(memcmp(read_file(&n), begins, 2) == 0);
	CHECK_STR(o.err, "");
	remove_files();
}

TEST(a_child_leaves_its_parents_trace_alone)
{
	check_parent_keeps("GORO_TRACE", "go");
}

TEST(a_child_leaves_its_parents_profile_alone)
{
	check_parent_keeps("GORO_CPUPROFILE", "\x1f\x8b");
}

static void tells_its_number(void)
{
	printf("%d", (int)getpid());
}

static void check_file_each(const char *name)
{
	struct stat st;

	point_to_file(name, "out-%p-%p.x");
	run_anew(tells_its_number);
	snprintf(path, sizeof path, "%s/out-%s-%s.x", directory, o.out, o.out);
	CHECK_EQ(stat(path, &st), 0);
	CHECK(st.st_size > 0);
	CHECK_STR(o.err, "");
	remove_files();
}

TEST(percent_p_in_a_traces_name_is_the_process)
{
	check_file_each("GORO_TRACE");
}

TEST(percent_p_in_a_profiles_name_is_the_process)
{
	check_file_each("GORO_CPUPROFILE");
}

static void tells_its_socket(void)
{
	char mine[120];
	struct stat st;

	snprintf(mine, sizeof mine, "%s/%d.sock", getenv("DIRECTORY"), (int)getpid());
	while (stat(mine, &st) != 0)	/* made by a thread of the runtime's */
		goro_sleep(GORO_MILLISECOND);
	printf("%d", S_ISSOCK(st.st_mode));
}

TEST(percent_p_in_a_servers_address_is_the_process)
{
	char address[100];

	CHECK(mkdtemp(directory));
	snprintf(address, sizeof address, "unix:%s/%%p.sock", directory);
	setenv("DIRECTORY", directory, 1);
	setenv("GORO_DEBUG_SERVE", address, 1);
	run_anew(tells_its_socket);
	CHECK_STR(o.out, "1");
	remove_files();
}

TEST(names_that_are_too_long_are_refused)
{
	static char name[5000];

	memset(name, 'a', sizeof name - 1);
	setenv("GORO_TRACE", name, 1);
	run_anew(does_nothing);
	CHECK_CONTAINS(o.err, "aaa: ");
	CHECK_CONTAINS(o.err, strerror(ENAMETOOLONG));
	CHECK_EQ(o.status, 0);
}

/* A device has no owner: it is not locked. */
TEST(devices_can_be_shared)
{
	setenv("GORO_TRACE", "/dev/null", 1);
	run_anew(has_a_child);
	CHECK_STR(o.out, "");
	CHECK_STR(o.err, "");
	CHECK_EQ(o.status, 0);
}
