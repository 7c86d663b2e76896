/*
 * terminal.c - the whole terminal: its other screen, its keys.
 */
#include "terminal.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define COLUMNS_MIN 80
#define ROWS_MIN    24

static struct termios before_us;
static volatile sig_atomic_t ended;

static void on_end(int sig)
{
	(void)sig;
	ended = 1;
}

static void on_resize(int sig)
{
	(void)sig;
}

void terminal_take(void)
{
	struct termios raw;
	struct sigaction sa = { .sa_handler = on_end }, resize = { .sa_handler = on_resize };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	sigaction(SIGWINCH, &resize, NULL);
	if (tcgetattr(STDIN_FILENO, &before_us) == 0) {
		raw = before_us;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	fputs("\033[?1049h\033[?25l\033[2J", stdout);
}

void terminal_leave(void)
{
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &before_us);
}

bool terminal_ended(void)
{
	return ended;
}

void terminal_size(int *columns, int *rows)
{
	struct winsize size;
	bool known = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;

	*columns = known ? size.ws_col : COLUMNS_MIN;
	*rows = known ? size.ws_row : ROWS_MIN;
}

/* What the arrow keys and their neighbours send: ESC [ or ESC O, and a letter. */
static int key_of(const char *keys)
{
	static const struct { const char *keys; int key; } table[] = {
		{ "A", KEY_UP }, { "B", KEY_DOWN }, { "C", KEY_RIGHT }, { "D", KEY_LEFT },
		{ "H", KEY_HOME }, { "F", KEY_END }, { "1~", KEY_HOME }, { "4~", KEY_END },
	};

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (strcmp(keys, table[i].keys) == 0)
			return table[i].key;
	return KEY_NONE;
}

static char read_byte(int milliseconds, bool *is_end)
{
	struct pollfd p = { STDIN_FILENO, POLLIN, 0 };
	char byte = '\0';

	if (poll(&p, 1, milliseconds) > 0)
		*is_end = read(STDIN_FILENO, &byte, 1) != 1 && !ended;
	return byte;
}

/* The rest of it comes at once, or it was the key Escape. */
static int key_behind_escape(void)
{
	char keys[4] = "";
	bool is_end = false;

	if (!strchr("[O", read_byte(20, &is_end)))
		return KEY_NONE;
	for (int i = 0; i < 3; i++) {
		keys[i] = read_byte(20, &is_end);
		if (keys[i] == '\0' || keys[i] == '~' || (keys[i] >= 'A' && keys[i] <= 'Z'))
			break;
	}
	return key_of(keys);
}

int terminal_key(int milliseconds)
{
	bool is_end = false;
	char byte = read_byte(milliseconds, &is_end);

	if (is_end)
		return KEY_END_OF_INPUT;
	if (byte == '\033')
		return key_behind_escape();
	return byte ? (unsigned char)byte : KEY_NONE;
}
