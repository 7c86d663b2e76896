"""What all parts share: where things are, and how to tell the user."""

import os
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
BUILD = ROOT / os.environ.get("BUILD", "build")
OUT = BUILD / "bench"


class Failure(Exception):
    """Something cannot be built, run or read; the message is for the user."""


def run_text(argv, **kwargs):
    """What a command printed; Failure with the end of it if it failed."""
    done = subprocess.run(argv, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **kwargs)
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-40:])
        raise Failure(f"{' '.join(map(str, argv))}\n{tail}")
    return done.stdout


def progress(text):
    """One line that overwrites itself; nothing when nobody watches."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def announce(text):
    """For logs, where a line that overwrites itself is of no use."""
    if not sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)


def warn(text):
    progress("")
    print(f"warning: {text}", file=sys.stderr)
