"""Who is measured.

A peer has a name, a version (set by build), and
  build()                   makes its programs
  command(workload, procs)  is how to run one, or None if it cannot
  env                       settings for it, if it has some
"""

import functools
import os
import shutil
from pathlib import Path

from .common import BENCH, BUILD, OUT, ROOT, Failure, run_text, warn


def generator():
    """As the Makefile chooses, since both use the same tree."""
    return "Ninja" if shutil.which("ninja") else "Unix Makefiles"


@functools.cache
def has_wrk():
    if shutil.which("wrk"):
        return True
    warn("wrk is not installed, going on without the workload http")
    return False


def served(server, *arguments):
    """How to measure an HTTP server: bench/http does it for every peer."""
    if not (server.exists() and has_wrk()):
        return None
    return [BENCH / "http", server, *arguments]


class Programs:
    """A directory with a program bench_WORKLOAD for each workload, and bench_httpd
    for http."""

    def __init__(self, name, directory):
        self.name = name
        self.directory = Path(directory)
        self.version = str(directory)
        self.env = {}

    def build(self):
        if not any(self.directory.glob("bench_*")):
            raise Failure(f"no bench_* programs in {self.directory}")

    def command(self, workload, procs):
        if workload == "http":
            return served(self.directory / "bench_httpd", "127.0.0.1:0")
        program = self.directory / f"bench_{workload}"
        return [program] if program.exists() else None


class Goro(Programs):
    """This tree, built by CMake."""

    def __init__(self, preset):
        super().__init__("goro", BUILD / preset / "bench")
        self.preset = preset

    def build(self):
        tree = self.directory.parent
        if not (tree / "CMakeCache.txt").exists():
            run_text(["cmake", "--preset", self.preset, "-B", tree], cwd=ROOT,
                     env={"CMAKE_GENERATOR": generator(), **os.environ})
        run_text(["cmake", "--build", tree, "--target", "bench_all",
                  "--parallel"], cwd=ROOT)
        self.version = f"{git_version()}, {self.build_type(tree)}"

    def build_type(self, tree):
        for line in (tree / "CMakeCache.txt").read_text().splitlines():
            if line.startswith("CMAKE_BUILD_TYPE:"):
                kind = line.partition("=")[2]
                if not kind.startswith("Rel"):
                    warn(f"goro is a {kind or 'not optimised'} build")
                return kind or "no build type"
        return "unknown build type"


class Calls:
    """goro's programs as they are, with libgoro-calls preloaded: those that are linked
    with the shared library."""

    name = "calls"
    workloads = {"crowd"}

    def __init__(self, programs):
        self.programs = programs
        self.library = programs.parent / "extra" / "calls" / "libgoro-calls.so"
        self.env = {"LD_PRELOAD": str(self.library)}

    def build(self):
        run_text(["cmake", "--build", self.programs.parent, "--target", "goro_calls"], cwd=ROOT)
        self.version = git_version()

    def command(self, workload, procs):
        return [self.programs / f"bench_{workload}"] if workload in self.workloads else None


class Started:
    """A peer whose start is measured by our bench_startup: it needs only a
    program to start."""

    def __init__(self, launcher):
        self.launcher = launcher / "bench_startup"

    def startup(self, program):
        if not (program.exists() and self.launcher.exists()):
            return None
        return [self.launcher, program]


class Go(Started):
    """peers/go: one program, the workload is its argument; and small ones that are
    measured from outside."""

    name = "go"
    directory = OUT / "peers" / "go"
    program = directory / "gorobench"

    def __init__(self, programs):
        super().__init__(programs)
        self.env = {"CROWD_SERVER": str(programs / "bench_crowd")}

    def build(self):
        go = os.environ.get("GO") or run_text([ROOT / "tools/setup", "go"]).strip()
        # go build is its own cache. Never let it look for another toolchain.
        env = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "",
               "GOPROXY": "off"}

        def make(package, program):
            run_text([go, "build", "-o", self.directory / program, package],
                     cwd=BENCH / "peers" / "go", env=env)

        make(".", "gorobench")
        make("./hello", "hello")
        try:
            make("./httpd", "httpd")
        except Failure as failure:      # the others need less of Go's library
            (self.directory / "httpd").unlink(missing_ok=True)
            warn(f"cannot build Go's server, going on without: {failure}")
        self.version = run_text([go, "version"], env=env).split()[2]
        self.workloads = set(run_text([self.program, "list"]).split())

    def command(self, workload, procs):
        if workload == "startup":
            return self.startup(self.directory / "hello")
        if workload == "http":
            return served(self.directory / "httpd")
        return [self.program, workload] if workload in self.workloads else None


class Native(Started):
    """A directory of peers/ with a C or C++ program for each workload, built by
    peers/CMakeLists.txt."""

    tree = OUT / "peers" / "native"
    most_procs = None

    def build(self):
        # Again each time: a library may have been installed meanwhile.
        run_text(["cmake", "-S", BENCH / "peers", "-B", self.tree, "-G",
                  generator(), "-DCMAKE_BUILD_TYPE=Release"])
        run_text(["cmake", "--build", self.tree, "--target",
                  f"peer_{self.name}", "--parallel"])
        self.version = (self.tree / f"{self.name}.version").read_text().strip()

    def command(self, workload, procs):
        if self.most_procs and procs > self.most_procs:
            return None
        if workload == "startup":
            return self.startup(self.tree / self.name / "hello")
        program = self.tree / self.name / f"bench_{workload}"
        return [program] if program.exists() else None


class Boost(Native):
    name = "boost"


class Tbb(Native):
    name = "tbb"


class Libuv(Native):
    name = "libuv"


class Pthreads(Native):
    """The kernel's threads, on so many CPUs: there cannot be more than there
    are."""

    name = "pthreads"
    most_procs = os.cpu_count()


class Bare(Native):
    """The system calls of a workload and nothing else: not a way to write such a
    program, but the floor under all of them."""

    name = "bare"


PEERS = {peer.name: peer for peer in (Go, Boost, Tbb, Pthreads, Libuv, Bare, Calls)}
TITLES = {"goro": "goro", "go": "Go", "boost": "Boost.Fiber", "tbb": "oneTBB",
          "pthreads": "pthreads", "libuv": "libuv", "bare": "bare calls", "calls": "goro-calls"}
FLOOR = Bare.name


def make_peer(spec, goro):
    name, given, directory = spec.partition("=")
    if given:
        return Programs(name, Path(directory).resolve())
    if name not in PEERS:
        raise Failure(f"no peer {name}; there is {', '.join(PEERS)}, "
                      "or NAME=DIRECTORY with bench_* programs")
    return PEERS[name](goro.directory)


def git_version():
    try:
        return run_text(["git", "describe", "--always", "--dirty"],
                        cwd=ROOT).strip()
    except (Failure, OSError):
        return "not committed"
