#!/usr/bin/env python3
"""snippets.py CC FLAG... -- LIBRARY FILE.md... - checks the C in documents.

A block that includes <goro.h>, or <goro.hpp> as C++, is a program: it compiles without a warning and runs; if a
text block follows, that is what it prints. One with <!-- program: NAME --> before it is compiled
only: a test of the page runs it. Another block compiles as it is if it defines a
function, and else as the body of one; a line of "..." stands for what is left out. What it uses is declared in a comment before it:
<!-- given: int x; -->.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"(?:^<!-- given: (.*?) -->\n|^<!-- program: (.*?) -->\n)?^```(?:c|cpp)\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.M | re.S)
HEADERS = "".join(f"#include <{h}.h>\n" for h in (
    "goro", "fcntl", "pthread", "poll", "signal", "stdlib", "string", "sys/socket", "sys/uio", "unistd"))


def wrapped(given, code):
    """A fragment as something that compiles. Declarations given are used, or need not be."""
    given = "".join(f"{d.strip()};\n" if d.strip().endswith(")") or d.strip().startswith(("struct", "typedef"))
                    else f"__attribute__((unused)) static {d.strip()};\n"
                    for d in (given or "").split(";") if d.strip())
    code = re.sub(r"^\s*\.\.\.$", "", code, flags=re.M)
    if re.search(r"^\{", code, re.M):
        return HEADERS + given + code
    return f"{HEADERS}{given}void fragment(void);\nvoid fragment(void)\n{{\n{code}}}\n"


def check(cc, library, folder, given, name, code, prints):
    cxx = "#include <goro.hpp>" in code
    if cxx:
        if not shutil.which("g++"):
            return None
        cc = ["g++", "-std=c++17"] + [flag for flag in cc if flag.startswith("-I")]
    whole = cxx or "#include <goro.h>" in code
    source, program = os.path.join(folder, "snippet.cc" if cxx else "snippet.c"), os.path.join(folder, "snippet")
    with open(source, "w") as f:
        f.write(code if whole else wrapped(given, code))
    command = cc + ["-Wall", "-Wextra", "-Werror"] + ["-Wno-unused-" + what for what in ("function", "variable", "but-set-variable", "parameter")]
    command += [source]
    command += ["-o", program, library, "-pthread"] if whole else ["-fsyntax-only"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return f"does not compile:\n{done.stderr}"
    if not whole or name:
        return None
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        return f"status {done.returncode}\n{done.stderr}"
    if prints is not None and done.stdout != prints:
        return f"prints:\n{done.stdout}instead of:\n{prints}"
    return None


def main():
    split = sys.argv.index("--")
    cc, library, pages = sys.argv[1:split], sys.argv[split + 1], sys.argv[split + 2:]
    failed = checked = 0
    with tempfile.TemporaryDirectory() as folder:
        for page in pages:
            with open(page) as f:
                text = f.read()
            for match in BLOCK.finditer(text):
                checked += 1
                error = check(cc, library, folder, *match.groups())
                if error:
                    line = text.count("\n", 0, match.start()) + 1
                    print(f"{page}:{line}: {error}")
                    failed += 1
    print(f"{checked} blocks, {failed} failed")
    sys.exit(failed != 0 or checked == 0)


main()
