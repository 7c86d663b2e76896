#!/usr/bin/env python3
"""Checks what comments and documents point to: every file, every name with an underscore and
every titled argument ("Owning a P" in rt.h) that a comment of the source mentions is there, and
so is every file and public name that a document sets as code. Prints what is not.

Run from the top of the source."""
import pathlib
import re
import sys

ROOT = pathlib.Path(".")
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
FILE = re.compile(r"(?<![\w/<.*])([a-z]\w*\.(?:c|h|S))\b")
NAME = re.compile(r"\b[a-z]\w*_\w+\b(?!\.go\b)")
TITLE = re.compile(r'"([A-Z][^"\n*]*(?:\n \*\s+[^"\n*]*)?)"(?:\s+and\s+"[^"]*")?\s+(?:\*\s+)?(?:in|of)\s+(?:\*\s+)?(\w+\.[ch])')
# Outside of what is read here: libc's, the kernel's, and names of examples in comments.
ELSEWHERE = re.compile(r"^(int_chan(_\w+)?|pthread_\w+|after_NAME|many_more|send_wakes_receiver|run_the_test|"
                       r"sched_runtime|x86_64)$")

EVERYTHING = ("src", "include", "cmd", "extra", "bench", "examples", "test")


def sources(*folders):
    return [f for d in folders for f in sorted((ROOT / d).rglob("*"))
            if f.suffix in (".c", ".h", ".S", ".cc") and f.is_file()]


def flat(text):
    return " ".join(re.sub(r"\n\s*\*", "\n", text).split())


def too_wide():
    """Lines of comments that end beyond column 90, tabs being 8 wide."""
    for f in sources(*EVERYTHING):
        text = f.read_text()
        for m in re.finditer(r"/\*.*?\*/", text, re.S):
            begin, end = text.rfind("\n", 0, m.start()) + 1, text.find("\n", m.end())
            for line in text[begin:end].split("\n"):
                if len(line.expandtabs(8)) > 90:
                    yield f"{f}: a comment beyond column 90: {line.strip()}"


def misplaced():
    """Sources that do not stand in the table of their room in ARCHITECTURE.md, and names there
    that are no file of the room."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rooms = re.findall(r"^### (\w+)\n(.*?)(?=^##)", text, re.M | re.S)
    for room, table in rooms:
        folder = ROOT / "src" / room
        named = set(re.findall(r"`((?:x86_64/)?\w+\.(?:c|h|S|html))`", re.sub(r"\|[^|]*\|$", "|", table, flags=re.M)))
        for name in sorted(named):
            if not (folder / name).exists() and not list(folder.glob(f"*/{name}")):
                yield f"ARCHITECTURE.md: src/{room} has no {name}"
        for source in sorted(folder.glob("*.c")):
            if source.name not in named:
                yield f"ARCHITECTURE.md: src/{room}/{source.name} is not in the table of its room"
    for folder in sorted((ROOT / "src").glob("*/")):
        if rooms and folder.name not in dict(rooms):
            yield f"ARCHITECTURE.md: src/{folder.name} has no table"


def main():
    wrong = []
    checked = sources("src", "include", "cmd", "test")
    known_files = {f.name for f in sources("src", "include", "cmd", "test", "bench", "examples")}
    stems = {name.rsplit(".", 1)[0] for name in known_files} | {s for f in ROOT.rglob("test/**/*.sh") for s in (f.stem, f.stem.removesuffix("_test"))}
    code, comments, texts = set(), [], {}

    for f in checked + sources("bench"):
        text = f.read_text()
        texts.setdefault(f.name, flat(text))
        for m in COMMENT.finditer(text):
            if m.group().startswith("/") and f in checked:
                comments.append((f, text.count("\n", 0, m.start()) + 1, m.group()))
        code.update(re.findall(r"\w+", COMMENT.sub(
            lambda m: " " if m.group().startswith("/") else m.group(), text)))

    for f, line, comment in comments:
        for name in set(FILE.findall(comment)) - known_files:
            wrong.append(f"{f}:{line}: there is no {name}")
        for name in set(NAME.findall(comment)) - code - stems:
            if not ELSEWHERE.match(name):
                wrong.append(f"{f}:{line}: there is no {name}")
        for title, name in TITLE.findall(comment):
            if name in texts and flat(title) not in texts[name].replace(f'"{flat(title)}"', ""):
                wrong.append(f"{f}:{line}: {name} has no \"{flat(title)}\"")

    for f in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]):
        for span in re.findall(r"`([^`\n]+)`", f.read_text()):
            for name in re.findall(r"^(?:src/(?:\w+/)*)?([a-z]\w*\.[ch])$", span):
                if f.name in ("ARCHITECTURE.md", "CONTRIBUTING.md") and name not in known_files:
                    wrong.append(f"{f}: there is no {name}")
            if f.name == "ARCHITECTURE.md" and re.fullmatch(r"[a-z]\w*_\w+", span) and \
                    span not in code and span not in stems:
                wrong.append(f"{f}: there is no {span}")
            for name in re.findall(r"(?<!:)\bgoro_[a-z]\w*\b(?=\(|$)", span):
                if name not in code and name not in stems:
                    wrong.append(f"{f}: there is no {name}")
    wrong += misplaced()
    wrong += too_wide()
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
