"""What each mechanism beyond Go's design gains: goro beside itself without it.

ablations.json names for each mechanism the setting of GORO_DEBUG that switches it off, the
workloads on which it is to matter, and with how many processors (procs; 1 and 2 where it
does not say). Each is a peer; the ratio says how many times better goro is with the
mechanism. One that shows no gain of a tenth anywhere is to go. What no workload shows
has none, and says what does (shown_by).
"""

import json

from .common import BENCH, Failure
from .peers import Programs

WORTH = 1.10        # a mechanism stays for a tenth on a workload that a user would recognise


class Ablated(Programs):
    """goro's own programs, with a setting."""

    def __init__(self, ablation, goro):
        super().__init__(ablation["setting"], goro.directory)
        self.mechanism = ablation["mechanism"]
        self.workloads = ablation["workloads"]
        self.procs = ablation.get("procs", (1, 2))
        self.shown_by = ablation.get("shown_by")
        self.env = {"GORO_DEBUG": ablation["setting"]}
        self.version = self.mechanism

    def command(self, workload, procs):
        if workload not in self.workloads or procs not in self.procs:
            return None
        return super().command(workload, procs)


def make_ablated(goro, only=None):
    """All, or those whose setting or mechanism is in only."""
    ablations = json.loads((BENCH / "ablations.json").read_text())
    names = {a["setting"] for a in ablations}
    unknown = set(only or []) - names
    if unknown:
        raise Failure(f"no ablation {', '.join(sorted(unknown))}; there is {', '.join(sorted(names))}")
    return [Ablated(a, goro) for a in ablations if not only or a["setting"] in only]


def workloads_of(ablated):
    return sorted({w for peer in ablated for w in peer.workloads})


def procs_of(ablated):
    return sorted({n for peer in ablated if peer.workloads for n in peer.procs})


def verdict(found):
    """What the ratios of one mechanism say: {(result, procs): comparison}."""
    gains = {k: c for k, c in found.items() if c["low"] >= WORTH}
    losses = {k: c for k, c in found.items() if c["high"] <= 1 / WORTH}
    if not found:
        return "not measured"
    return ("gains" if gains else "no gain") + (", loses elsewhere" if losses else "")


def summary(comparison, ablated):
    """Rows (setting, mechanism, verdict, details) for the terminal."""
    for peer in ablated:
        found = {(result, procs): c for (result, procs, name), c in comparison.by_key.items()
                 if name == peer.name}
        told = sorted(found.items(), key=lambda item: -abs(item[1]["ratio"] - 1))[:4]
        details = [f"{result} on {procs} P {c['ratio']:.2f} ({c['low']:.2f}-{c['high']:.2f})"
                   for (result, procs), c in told]
        if not found and peer.shown_by:
            details = [f"shown by {peer.shown_by}"]
        yield peer.name, peer.mechanism, verdict(found), details
