#!/usr/bin/env python3
"""samples.py FOLDER PAGE... - runs the commands that pages show, and compares what they print.

A block of text whose commands, the lines that begin with "$ ", have a `goro trace`, `goro profile`
or `goro explain` among them is a sample. (Those with a $(pidof NAME) are diagnosing.py's.) All its
commands are run in FOLDER, and what each prints must have the form of what stands below it:

  - the same sections, between empty lines, with the same titles;
  - in each section the same rows, in any order: the same words at the same columns, and numbers that
    end at the same columns. Numbers may be others, as may units, bars, drawings, and who ran where;
  - where a line of the page is "...", the command may print more rows, each with as many columns of
    the same kind as one that the page has.

What a command prints may depend on what else the machine does: the block is run again until it
prints that, for TRIES times. A row of the page has to be there in one of the runs. Which goroutine does what in `goro explain` is a matter of moments: each
sentence of the page must be there in one of the runs, of any goroutine, and the columns in each.
"""
import collections
import os
import re
import subprocess
import sys

TRIES = int(os.environ.get("TRIES", "30"))
BLOCK = re.compile(r"^```text\n(\$ .*?)^```\n", re.M | re.S)
SAMPLE = re.compile(r"^\$ goro (trace|profile|explain)\b(?!.*pidof)", re.M)
TIME = r"[0-9][0-9,.]* (?:ns|us|ms|s|min)\b"
NUMBER = r"[0-9][0-9,.]*"
PIECE = re.compile(rf"(?P<time>(?<![\w.]){TIME})|(?P<number>(?<![\w.]){NUMBER}(?![\w.])|(?<=\|){NUMBER}(?= ))|"
                   r"(?P<bar>#+)|(?P<id>\b[GMP]\d+\b)|(?P<file>\w+\.[ch](:\d+)?(?![\w]))|(?P<word>[^\s|]+|\|)")


def drawing(line):
    """Rows of letters and digits, a column each for a slice of time: their form, or None."""
    if re.match(r"^P\d+    ", line):
        return "a processor's row" if re.fullmatch(r"P\d+ {4}[A-Za-z.\- ]+? +\d+ %", line) else None
    if line.startswith("ready "):
        return "the row of ready ones" if re.fullmatch(r"ready [\d+. ]*", line.rstrip() + " ") else None
    if re.match(r"^ {6}\|0 ", line):
        return "the axis" if re.fullmatch(rf" {{6}}\|0( +\|{TIME})+", line) else None
    return None


def pieces(line):
    """Its pieces: (kind, text, column). Of numbers, and of bars, the column is where they end."""
    for found in PIECE.finditer(line):
        kind = found.lastgroup
        yield kind, found.group(), found.end() if kind in ("time", "number") else found.start()


def form(line, title, words=True):
    """What has to be the same. Columns count in tables only: elsewhere numbers push words aside."""
    if drawing(line):
        return drawing(line)
    table = line.startswith("  ") and not title
    out = []
    for kind, text, column in pieces(line):
        if kind == "bar":
            continue
        if kind == "number" and text == "0":
            kind = "time" if table else kind	# no time at all has no unit
        elif kind == "number" and table:
            kind = "time"
        out.append((kind, text if kind == "word" and words else "", column if table and words else 0))
    if not words:	# neighbours of one kind are one cell
        out = [piece for i, piece in enumerate(out) if i == 0 or piece[0] != out[i - 1][0]]
    return tuple(out)


def sections(lines):
    out, last = [], None
    for line in lines:
        if not line.strip():
            last = None
        elif last is None:
            last = [line]
            out.append(last)
        else:
            last.append(line)
    return out


def differs(expected, printed, seen):
    """What is not as the page says; None: nothing. seen: the rows of all runs."""
    want, got = sections(expected), sections(printed)
    if want and want[-1] == ["..."]:
        want, got = want[:-1], got[:len(want) - 1]
    if len(want) != len(got):
        return f"{len(got)} sections instead of {len(want)}"
    for page, now in zip(want, got):
        if form(page[0], True) != form(now[0], True) or (page[0][0] == " " and page[0] != now[0] and
                                                         not re.search(r"\d", page[0])):
            return f"{now[0]!r} instead of {page[0]!r}"
        more = "..." in page
        rows = {form(line, False): line for line in page[1:] if line != "..."}
        found = {form(line, False): line for line in now[1:]}
        seen.update(found)
        for row in rows.keys() - seen:
            return f"no row like {rows[row]!r}"
        kinds = {form(line, False, words=False) for line in rows.values()}
        for row in found.keys() - rows.keys():
            if not more or form(found[row], False, words=False) not in kinds:
                return f"a row {found[row]!r}, and the page has none like it"
    return None


# ------------------------------------------------------------------ goro explain

GOROUTINE = re.compile(r"\bG\d+ [a-z]+")
STEP = re.compile(r"^ *(\d[\d.]* (?:us|ms|s|ns)|0)  (.*)")


def sentence(step):
    """A step, whichever goroutine and processor it is about."""
    return re.sub(r"\d[\d.]*", "N", GOROUTINE.sub("G", step))


def steps(lines):
    """What stands above the steps; the steps, on a line each; the columns where sentences begin."""
    title = next(i for i, line in enumerate(lines) if re.match(r"^ +time  ", line))
    at = lines[title].index("what happened")
    out, columns = [], set()
    for line in lines[title + 1:]:
        if not line.strip():
            continue
        if not STEP.match(line) and not line.startswith(" " * at):
            return None, [], {line}
        if STEP.match(line):
            out.append("")
            columns.add(STEP.match(line).start(2))
        out[-1] += " " + line[at:].strip()
    return [line.rstrip() for line in lines[:title + 1]], [sentence(step) for step in out], columns


def differs_explain(expected, printed, seen):
    above, told, columns = steps(expected)
    above_now, told_now, columns_now = steps(printed)
    if above != above_now:
        return f"{above_now} instead of {above}"
    if columns != columns_now:
        return f"its columns: {columns_now} instead of {columns}"
    seen.update(told_now)
    for step in told:
        if step not in seen:
            return f"nothing like {step!r}"
    return None


# ---------------------------------------------------------------------- the pages

def commands(block):
    """[(command, lines)] of a block."""
    out = []
    for line in block.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            out.append((line[2:], []))
        else:
            out[-1][1].append(line)
    return out


def compare(block, folder, seen):
    for command, expected in commands(block):
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60,
                              env=os.environ | {"GORO_MAXPROCS": "2"}, check=False)
        if done.returncode != 0:
            return f"{command}: status {done.returncode}: {done.stderr}"
        printed = done.stdout.rstrip("\n").split("\n") if done.stdout else []
        explains = command.startswith("goro explain")
        why = (differs_explain if explains else differs)(expected, printed, seen[command])
        if why:
            return f"{command}: {why} in:\n{done.stdout}"
    return None


def main():
    folder, pages = sys.argv[1], sys.argv[2:]
    checked, failed = set(), 0
    for page in pages:
        with open(page, encoding="utf-8") as f:
            text = f.read()
        for block in BLOCK.findall(text):
            if not SAMPLE.search(block):
                continue
            seen = collections.defaultdict(set)
            for _ in range(TRIES):
                why = compare(block, folder, seen)
                if not why:
                    break
            else:
                print(f"{page}: {why}")
                failed += 1
            checked.update(SAMPLE.findall(block))
    print(f"samples of {', '.join(sorted(checked))}; {failed} failed")
    sys.exit(failed != 0 or not checked)


if __name__ == "__main__":
    main()
