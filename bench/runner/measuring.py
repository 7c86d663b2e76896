"""The rounds.

Every program runs one measurement per round, and within a round all peers and
all numbers of processors take turns, so that a machine that slows down slows
all of them. Round 0 is short and does not count: it is for the machine, whose
memory a hypervisor may have to find first. (Each program warms up by itself,
too.) A measurement during which others used the machine is made again, a few
times. A peer that fails once is out of that workload.
"""

import json
import os
import resource
import subprocess
import time
from pathlib import Path

from .common import BENCH, Failure, announce, progress

PREPARING_SECONDS = 0.01

# Settings of either runtime that a user's shell may carry: the figures are of
# the defaults.
UNSET = ("GOGC", "GODEBUG", "GOMEMLIMIT", "GOTRACEBACK")

# Workloads that are no bench/NAME.c: bench/NAME measures a program of each peer's
# from outside.
OUTSIDE = {"http"}

# Not measured with 4, 8, ... processors: they take a given time, or memory that
# the first measurements have told of already, or share the machine with wrk.
UNSCALED = {"blocking", "crowd", "hogs", "http", "idle", "idleconns", "lateness", "memory",
            "startup", "timers", "wakeup"}
SCALED_PEERS = {"goro", "go"}

NOISY_OTHERS = 0.10     # of the machine, used by other processes meanwhile
PAUSE_SECONDS = 1       # for them to go away


def choose_workloads(only):
    """These, which there have to be, or all."""
    known = sorted({path.stem for path in BENCH.glob("*.c")} | OUTSIDE)
    unknown = set(only or []) - set(known)
    if unknown:
        raise Failure(f"no workload {', '.join(sorted(unknown))}; "
                      f"there is {', '.join(known)}")
    return only or known


def machine_cpu():
    """Seconds of CPU that the whole machine has used, and that the hypervisor
    has kept from it."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / tick, steal / tick


def children_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def parse_results(text, procs):
    try:
        lines = [json.loads(line) for line in text.splitlines()]
    except ValueError:
        raise Failure(f"did not print results but: {text[:2000]}") from None
    for line in lines:
        if line["procs"] != procs:
            raise Failure(f"ran with {line['procs']} processors, not {procs}")
    return lines


def environment(procs, seconds, settings):
    env = {k: v for k, v in os.environ.items()
           if k not in UNSET and not k.startswith("GORO_")} | settings
    env |= {name: str(procs)
            for name in ("GORO_MAXPROCS", "GOMAXPROCS", "BENCH_PROCS")}
    if seconds:
        env["BENCH_SECONDS"] = str(seconds)
    return env


def measure_once(command, procs, seconds, timeout, settings=None):
    """Runs one program: its result lines, and how the machine was meanwhile."""
    start, machine, own = time.monotonic(), machine_cpu(), children_cpu()
    try:
        done = subprocess.run(command, env=environment(procs, seconds, settings or {}),
                              text=True, capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failure(f"no result after {timeout} s") from None
    wall = time.monotonic() - start
    cpu = children_cpu() - own
    busy, stolen = (b - a for a, b in zip(machine, machine_cpu()))
    if done.returncode:
        raise Failure(f"exit status {done.returncode}: "
                      + "\n".join(done.stderr.splitlines()[:12]))
    lines = parse_results(done.stdout, procs)
    # /proc/stat counts in ticks, so a short run needs a floor against rounding.
    others = max(0.0, busy - cpu - 0.05) + stolen
    return lines, {"cpu": cpu / wall, "others": others / wall / os.cpu_count()}


def measure_quietly(command, procs, seconds, args, settings=None):
    """The first measurement that others left alone, or else the one that they
    disturbed least."""
    best = None
    for attempt in range(args.patience + 1):
        if attempt:
            time.sleep(PAUSE_SECONDS)
        found = measure_once(command, procs, seconds, args.timeout, settings)
        if not best or found[1]["others"] < best[1]["others"]:
            best = found
        if best[1]["others"] <= NOISY_OTHERS:
            break
    return best


class Progress:
    """What is being done, and how long it may take yet."""

    def __init__(self, total):
        self.total = total
        self.done = 0
        self.start = time.monotonic()

    def step(self, text):
        self.done += 1
        progress(f"{self.done}/{self.total}  {text}{self.left()}")

    def left(self):
        spent = time.monotonic() - self.start
        if self.done < 20:
            return ""
        seconds = spent / self.done * (self.total - self.done)
        return f"  (about {seconds / 60:.0f} min left)"


def points(peers, workload, args):
    """The peers and numbers of processors of a workload, in turn."""
    for procs in args.procs + (args.scale if workload not in UNSCALED else []):
        found = [(peer, procs, peer.command(workload, procs)) for peer in peers
                 if procs in args.procs or peer.name in SCALED_PEERS]
        found = [point for point in found if point[2]]
        if len(found) > 1 or args.ablate is None:
            yield from found


def measure_all(peers, workloads, results, args):
    jobs = {w: list(points(peers, w, args)) for w in workloads}
    watch = Progress(sum(map(len, jobs.values())) * (args.rounds + 1))
    for number, workload in enumerate(workloads, 1):
        announce(f"[{number}/{len(workloads)}] {workload}{watch.left()}")
        measure_workload(jobs[workload], workload, results, args, watch)
    progress("")


def measure_workload(turns, workload, results, args, watch):
    for round_number in range(args.rounds + 1):
        for peer, procs, command in turns:
            watch.step(f"{workload} on {procs}, round {round_number}, {peer.name}")
            if results.failed(workload, procs, peer.name):
                continue
            settings = getattr(peer, "env", {})
            try:
                if round_number == 0:
                    measure_once(command, procs, PREPARING_SECONDS, args.timeout, settings)
                    continue
                lines, machine = measure_quietly(command, procs, args.seconds,
                                                 args, settings)
            except Failure as failure:
                results.fail(workload, procs, peer.name, str(failure))
                continue
            for line in lines:
                results.add(procs, peer.name, round_number, line, machine)
