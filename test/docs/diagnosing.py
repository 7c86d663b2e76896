#!/usr/bin/env python3
"""diagnosing.py GORO CC PAGE FOLDER - runs the programs of a page, and the commands below them.

A program is a block of C with <!-- program: NAME --> before it. A text block behind it that begins with
"$ goro ... $(pidof NAME)" is what the command prints, line by line, but for the numbers, and for
what a line of "..." stands for. A program may need a while to get there: the command is run
again until it prints that, for a minute.
"""
import os
import re
import subprocess
import sys
import time

PARTS = re.compile(r"^<!-- program: (\w+) -->\n```c\n(.*?)^```\n|^```text\n\$ goro (.*?) \$\(pidof (\w+)\)\n(.*?)^```\n", re.M | re.S)
NUMBER = r"[0-9][0-9,.]*"
UNITS = r"(ns|us|ms|s|min)"


def pattern(line):
    """A regular expression for a line: other numbers, units, widths, bars, and files of functions: what the
    compiler puts into its caller is in another one."""
    line = re.sub(r"  \w+\.[ch]$", "  FILE", line.strip())
    parts = re.split(rf"(\+0x[0-9a-f]+|\d\d:\d\d:\d\d|{NUMBER} (?:ns|us|ms|s|min)\b|{NUMBER}|#+|\s+)", line)
    out = ""
    for part in parts:
        if re.fullmatch(r"\s+", part):
            out += r"\s+"
        elif part == "FILE":
            out += r"\w+\.[ch]"
        elif re.fullmatch(r"\+0x.*", part):
            out += r"\+0x[0-9a-f]+"
        elif re.fullmatch(r"\d\d:\d\d:\d\d", part):
            out += r"\d\d:\d\d:\d\d"
        elif re.fullmatch(rf"{NUMBER} \w+", part):
            out += rf"{NUMBER} {UNITS}"
        elif re.fullmatch(NUMBER, part):
            out += NUMBER
        elif re.fullmatch("#+", part):
            out += "#*"
        else:
            out += re.escape(part)
    return re.compile(r".*" + out)		# a path may be before a file


def missing(expected, printed):
    """The first line that is not there; None: all are."""
    lines, at, anywhere = printed.split("\n"), 0, False
    for line in expected.rstrip("\n").split("\n"):
        if line == "...":
            anywhere = True
            continue
        want = pattern(line)
        while at < len(lines) and not want.fullmatch(lines[at].rstrip()):
            if not anywhere:
                return line
            at += 1
        if at == len(lines):
            return line
        at, anywhere = at + 1, False
    return None


def check(goro, words, pid, expected):
    end = time.monotonic() + 60
    while True:
        done = subprocess.run([goro] + words.split() + [str(pid)], capture_output=True, text=True, timeout=60)
        line = missing(expected, done.stdout)
        if line is None:
            return None
        if time.monotonic() > end:
            return f"goro {words}: no line like {line!r} in:\n{done.stdout}{done.stderr}"
        time.sleep(0.1)


def main():
    goro, cc, page, folder = sys.argv[1:]
    running, failed, checked = {}, 0, 0
    with open(page) as f:
        text = f.read()
    try:
        for name, code, words, target, expected in PARTS.findall(text):
            if name:
                with open(os.path.join(folder, name + ".c"), "w") as f:
                    f.write(code)
                subprocess.run([goro, "build", "-o", name, name + ".c", "--", "-g", "-O2"], cwd=folder, check=True,
                               env=os.environ | {"CC": cc})
                running[name] = subprocess.Popen([os.path.join(folder, name)])
                continue
            error = check(goro, words, running[target].pid, expected)
            checked += 1
            if error:
                print(f"{page}: {error}")
                failed += 1
    finally:
        for program in running.values():
            program.kill()
            program.wait()
    print(f"{len(running)} programs, {checked} commands, {failed} failed")
    sys.exit(failed != 0 or checked == 0)


main()
