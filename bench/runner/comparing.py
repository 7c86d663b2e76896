"""What the samples say: how many times better goro is than each peer, whether
the goals are met, and what holds for all workloads together.

A ratio above 1 means that goro is ahead. Its 95 % interval comes from resampling
whole rounds, since what disturbs a machine disturbs a round. There is no ratio
unless both sides print the same check.

Memory has goals of its own, which say how much it may be: more than Go's, since a stack
of C's takes a page. So it does not count where results are to be no worse than a
peer's, and is told of there nevertheless.
"""

import json
import math
import random
import statistics

from .common import BENCH
from .measuring import NOISY_OTHERS
from .peers import FLOOR
from .results import known_figures

RESAMPLES = 2000
GOAL_PROCS = (1, 2)     # where a goal holds that does not say
MEMORY_UNIT = "B"

NOISY_SPREAD = 0.10     # of the median, between the quartiles of the samples
EXTRA_CPUS = 1.2        # times the processors it was given: threads that spin


def better(unit, ours, theirs):
    """How many times better ours is. Less is better, but more per second."""
    first, second = (ours, theirs) if unit.endswith("/s") else (theirs, ours)
    return first / second if second else math.inf


def compare(ours, theirs):
    """The ratio of the medians and its 95 % interval, or None."""
    rounds = sorted(ours.values.keys() & theirs.values.keys())
    if not rounds:
        return None

    def ratio(picked):
        return better(ours.unit,
                      statistics.median(ours.values[r] for r in picked),
                      statistics.median(theirs.values[r] for r in picked))

    # The same samples shall give the same interval.
    chance = random.Random(1)
    resampled = sorted(ratio(chance.choices(rounds, k=len(rounds)))
                       for _ in range(RESAMPLES))
    return {"ratio": ratio(rounds), "low": resampled[int(0.025 * RESAMPLES)],
            "high": resampled[int(0.975 * RESAMPLES)]}


def geometric_mean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))


class Comparison:
    """Everything derived from Results.

    rows        one for each result, number of processors and peer
    goals       one for each goal and number of processors
    mismatches  pairs that did not do the same work
    noise       what may have disturbed the figures
    """

    def __init__(self, results):
        self.results = results
        self.others = [p for p in results.peers() if p != "goro"]
        self.mismatches = []
        self.rows = [self.row(result, procs, peer)
                     for result, procs in results.table
                     for peer in self.others or [None]
                     if peer is None or results.get(result, procs, peer)]
        self.by_key = {(r["result"], r["procs"], r["peer"]): r["comparison"]
                       for r in self.rows if r["comparison"]}
        self.goals = list(self.judge_all(
            json.loads((BENCH / "goals.json").read_text())))
        self.noise = list(self.find_noise())

    def row(self, result, procs, peer):
        ours = self.results.get(result, procs, "goro")
        theirs = self.results.get(result, procs, peer) if peer else None
        comparison = None
        if ours and theirs and ours.checks != theirs.checks:
            self.mismatches.append(
                f"{result} on {procs}: goro did {sorted(ours.checks)}, "
                f"{peer} did {sorted(theirs.checks)}")
        elif ours and theirs:
            comparison = compare(ours, theirs)
        return {"result": result, "procs": procs, "peer": peer, "goro": ours,
                "theirs": theirs, "comparison": comparison}

    # ------------------------------------------------------------- goals

    def judge_all(self, goals):
        claims = {"mean": self.judge_mean, "none_worse": self.judge_none_worse,
                  "nobody_ahead": self.judge_nobody_ahead,
                  "oversubscribed": self.judge_oversubscribed}
        for goal in goals:
            procs = goal.get("procs", GOAL_PROCS)
            for n in procs if isinstance(procs, (list, tuple)) else [procs]:
                judged = claims.get(goal.get("claim"), self.judge_one)(goal, n)
                yield {"area": goal["area"], "procs": n, **judged}

    def judge_one(self, goal, procs):
        """"met" or "missed", with "?" if the noise spans the goal."""
        result, peer = goal["result"], goal.get("peer")
        ours = self.results.get(result, procs, "goro")
        found = self.by_key.get((result, procs, peer))
        got, verdict = "", "not measured"
        if "value_at_most" in goal:
            wanted = f"<= {goal['value_at_most']:g} {ours.unit if ours else ''}"
            if ours:
                got = f"{ours.median():.4g} {ours.unit}"
                verdict = judge(-goal["value_at_most"], -ours.median(),
                                -max(ours.values.values()),
                                -min(ours.values.values()))
        else:
            wanted = f">= {goal['ratio_at_least']:g} x {peer}"
            if found:
                got = f"{found['ratio']:.2f} ({found['low']:.2f}-{found['high']:.2f})"
                got += self.floor(result, procs, peer)
                verdict = judge(goal["ratio_at_least"], found["ratio"],
                                found["low"], found["high"])
        return {"what": result, "goal": wanted.strip(), "got": got,
                "verdict": verdict}

    def floor(self, result, procs, peer):
        """What the system calls alone would be, where that was measured."""
        floor = self.results.get(result, procs, FLOOR)
        theirs = self.results.get(result, procs, peer)
        found = compare(floor, theirs) if floor and theirs else None
        return f"; the calls alone {found['ratio']:.2f}" if found else ""

    def against(self, peer, procs):
        """{result: comparison} with one peer."""
        return {result: c for (result, on, name), c in self.by_key.items()
                if on == procs and name == peer}

    def mean_over_workloads(self, peer, procs):
        """Each workload counts once, however many results it has."""
        by_workload = {}
        for result, found in self.against(peer, procs).items():
            by_workload.setdefault(result.partition(".")[0], []).append(
                found["ratio"])
        if not by_workload:
            return None, 0
        return (geometric_mean(map(geometric_mean, by_workload.values())),
                len(by_workload))

    def judge_mean(self, goal, procs):
        mean, count = self.mean_over_workloads(goal["peer"], procs)
        return {"what": f"geometric mean over {count} workloads",
                "goal": f">= {goal['ratio_at_least']:g} x {goal['peer']}",
                "got": f"{mean:.2f}" if mean else "",
                "verdict": judge(goal["ratio_at_least"], mean, mean, mean)
                if mean else "not measured"}

    def is_memory(self, result, procs):
        return self.results.get(result, procs, "goro").unit == MEMORY_UNIT

    def judge_none_worse(self, goal, procs):
        worse, apart, count = [], [], 0
        for result, c in sorted(self.against(goal["peer"], procs).items(),
                                key=lambda item: item[1]["ratio"]):
            memory = self.is_memory(result, procs)
            count += not memory
            if c["ratio"] < 1:
                text = f"{result} {c['ratio']:.2f}{'' if c['high'] < 1 else '?'}"
                (apart if memory else worse).append(text)
        surely = any(not text.endswith("?") for text in worse)
        return {"what": f"worse than {goal['peer']}", "goal": "none",
                "got": f"{len(worse)} of {count}",
                "list": worse + [f"({text}: see its goal)" for text in apart],
                "verdict": "not measured" if not count else "met" if not worse
                else "missed" if surely else "missed?"}

    def judge_nobody_ahead(self, goal, procs):
        limit, ahead, apart, count = goal["ratio_at_least"], [], [], 0
        for (result, on, peer), c in self.by_key.items():
            if on == procs and peer != FLOOR:
                memory = self.is_memory(result, procs)
                count += not memory
                if c["ratio"] < limit:
                    text = (f"{peer} {result} {c['ratio']:.2f}"
                            + ("" if c["high"] < limit else "?"))
                    (apart if memory else ahead).append(text)
        for figure in self.known():
            if figure["procs"] == procs:
                count += 1
                if figure["ratio"] < limit:
                    ahead.append(f"{figure['peer']}* {figure['result']} "
                                 f"{figure['ratio']:.2f}")
        return {"what": "a peer more than 10 % ahead", "goal": "none",
                "got": f"{len(ahead)} of {count}",
                "list": ahead + [f"({text}: see its goal)" for text in apart],
                "verdict": "not measured" if not count else
                "missed" if ahead else "met"}

    def oversubscribed(self, procs, base):
        """{result: comparison of goro on procs with goro on base}"""
        found = {}
        for (result, on), by_peer in self.results.table.items():
            fewer = self.results.get(result, base, "goro")
            if on == procs and "goro" in by_peer and fewer:
                found[result] = compare(by_peer["goro"], fewer)
        return {k: v for k, v in found.items() if v}

    def judge_oversubscribed(self, goal, procs):
        base, limit = goal["against_procs"], goal["ratio_at_least"]
        found = self.oversubscribed(procs, base)
        lost = [f"{result} {c['ratio']:.2f}{'' if c['high'] < limit else '?'}"
                for result, c in found.items() if c["ratio"] < limit]
        mean = (geometric_mean(c["ratio"] for c in found.values())
                if found else 0)
        return {"what": f"{procs} Ps against {base}: slower than "
                        f"{limit:g} times", "goal": "none",
                "got": f"{len(lost)} of {len(found)}, mean {mean:.2f}",
                "list": lost, "verdict": "not measured" if not found else
                "missed" if lost else "met"}

    # ----------------------------------------------------- known figures

    def known(self):
        """The figures of known.json, with goro's and the ratio where there is
        one. They are of another run: the ratio is a rough one."""
        for figure in known_figures()["figures"]:
            ours = self.results.get(figure["result"], figure["procs"], "goro")
            if ours:
                yield {**figure, "goro": ours,
                       "ratio": better(ours.unit, ours.median(), figure["value"])}

    # ------------------------------------------------------------- noise

    def find_noise(self):
        varied, busy, spinning = [], 0, []
        count = 0
        for (result, procs), by_peer in self.results.table.items():
            for name, samples in by_peer.items():
                count += 1
                where = f"{name} {result} on {procs}"
                if samples.spread() > NOISY_SPREAD:
                    varied.append(f"{where} {samples.spread():.0%}")
                if statistics.median(samples.others) > NOISY_OTHERS:
                    busy += 1
                used = statistics.median(samples.cpu)
                if used > procs * EXTRA_CPUS:
                    spinning.append(f"{where} {used:.1f}")
        if self.results.machine["load"] > 0.5:
            yield ("the machine was busy at the start (load "
                   f"{self.results.machine['load']:.2f})")
        if busy:
            yield (f"other processes took more than {NOISY_OTHERS:.0%} of the "
                   f"machine during {busy} of {count} measurements")
        if varied:
            yield (f"{len(varied)} of {count} figures vary by more than "
                   f"{NOISY_SPREAD:.0%}: {', '.join(varied)}")
        if spinning:
            yield ("more CPUs kept busy than there were processors: "
                   + ", ".join(spinning))

    def as_json(self):
        return {"comparisons": [{k: row[k] for k in ("result", "procs", "peer",
                                                     "comparison")}
                                for row in self.rows if row["comparison"]],
                "goals": self.goals, "mismatches": self.mismatches,
                "noise": self.noise}


def judge(limit, got, low, high):
    return (("met" if got >= limit else "missed")
            + ("?" if low < limit <= high else ""))
