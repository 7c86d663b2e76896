#!/usr/bin/env python3
"""Checks what the models of test/models name: each file of src is there; each function that follows a
file's name ("src/sched/p.c p_take, take_claimed") stands in its code; each titled argument ("Owning a
P" in src/sched/rt.h) stands in it; each other name with an underscore in a comment is somewhere in src,
or in the model. README.md has a line for each model. Prints what is not so.

Run from the top of the source."""
import pathlib
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/", re.S)
FILE = re.compile(r"\bsrc/[\w/]+\.(?:c|h|S)\b")
NAMES = re.compile(r"(src/[\w/]+\.(?:c|h|S)) ([a-z]\w*(?:, [a-z]\w*)*)")
TITLE = re.compile(r'"([A-Z][^"]*)" (?:and "([A-Z][^"]*)" )?in (?:the opening comment of )?(src/[\w/]+\.[ch])')
PROSE = {"and", "in", "which"}


def flat(text):
    return " ".join(re.sub(r"\n\s*\*", "\n", text).split())


def code_of(text):
    return set(re.findall(r"\w+", COMMENT.sub(" ", text)))


def wrong_in(model, words_of_src):
    text = model.read_text()
    own = code_of(text) | code_of((model.parent / "memory.h").read_text())
    comments = [flat(m.group()) for m in COMMENT.finditer(text)]
    files = {name for c in comments for name in FILE.findall(c)}

    if model.suffix == ".pml" and not files:
        yield "it names no file of src"
    for name in sorted(files):
        if not pathlib.Path(name).is_file():
            yield f"there is no {name}"
    files = {name: pathlib.Path(name).read_text() for name in files if pathlib.Path(name).is_file()}
    for comment in comments:
        for file, names in NAMES.findall(comment):
            names = names.split(", ")
            for i, name in enumerate(names):
                if name in PROSE or file not in files or (i > 0 and "_" not in name):
                    continue
                if name not in code_of(files[file]):
                    yield f"{file} has no {name}"
        for first, second, file in TITLE.findall(comment):
            for title in (first, second):
                if title and file in files and title not in flat(files[file]):
                    yield f'{file} has no "{title}"'
        for name in re.findall(r"\b[a-z]\w*_\w+\b(?!\.pml)", FILE.sub(" ", comment)):
            if name not in words_of_src and name not in own:
                yield f"there is no {name}"


def main():
    folder = pathlib.Path("test/models")
    words = set()
    for f in pathlib.Path("src").rglob("*"):
        if f.suffix in (".c", ".h", ".S"):
            words |= code_of(f.read_text())
    readme = (folder / "README.md").read_text()
    wrong = [f"{f}: {w}" for f in [*sorted(folder.glob("*.pml")), folder / "memory.h"] for w in wrong_in(f, words)]
    wrong += [f"{folder}/README.md: no line for {f.name}" for f in sorted(folder.glob("*.pml")) if f"| `{f.name}` |" not in readme]
    wrong += [f"{folder}/README.md: there is no {n}" for n in re.findall(r"^\| `(\w+\.pml)` \|", readme, re.M)
              if not (folder / n).exists()]
    print("\n".join(sorted(set(wrong))))
    return 1 if wrong else 0


sys.exit(main())
