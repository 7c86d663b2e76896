"""Everything that was measured: the file that the tables and the page are made
of, so that both can be made again, and of several runs together.

Figures of other systems that nobody can install by a package are in known.json;
they were measured elsewhere and are shown as such.
"""

import datetime
import json
import os
import platform
import statistics
from pathlib import Path

from .common import BENCH, Failure


class Samples:
    """What one peer printed for one result, round by round."""

    def __init__(self, unit):
        self.unit = unit
        self.values = {}        # by round, since a round may fail
        self.quantiles = {}     # by round: [[share, value], ...]
        self.checks = set()
        self.cpu = []
        self.others = []

    def add(self, round_number, line, machine):
        self.values[round_number] = line["value"]
        if "quantiles" in line:
            self.quantiles[round_number] = line["quantiles"]
        self.checks.add(line["check"])
        self.cpu.append(line.get("cpus", machine["cpu"]))
        self.others.append(machine["others"])

    def median(self):
        return statistics.median(self.values.values())

    def spread(self):
        """The distance between the quartiles, as a share of the median."""
        if len(self.values) < 2 or not self.median():
            return 0.0
        low, _, high = statistics.quantiles(self.values.values(), n=4,
                                            method="inclusive")
        return (high - low) / self.median()

    def distribution(self):
        """[(share, value)], each value the median over the rounds."""
        return [(points[0][0], statistics.median(v for _, v in points))
                for points in zip(*self.quantiles.values())]

    def as_json(self):
        return {"unit": self.unit, "median": self.median(),
                "spread": self.spread(), "values": self.values,
                "quantiles": self.quantiles, "checks": sorted(self.checks),
                "cpus_used": self.cpu, "others_share": self.others}

    @classmethod
    def from_json(cls, data):
        self = cls(data["unit"])
        self.values = {int(r): v for r, v in data["values"].items()}
        self.quantiles = {int(r): q for r, q in data["quantiles"].items()}
        self.checks = set(data["checks"])
        self.cpu, self.others = data["cpus_used"], data["others_share"]
        return self


class Results:
    """table: {(result, procs): {peer: Samples}}, in order of measuring."""

    def __init__(self, machine=None):
        self.machine = machine
        self.rounds = 0
        self.table = {}
        self.failures = {}      # {"workload on procs: peer": why}

    def add(self, procs, peer, round_number, line, machine):
        self.rounds = max(self.rounds, round_number)
        by_peer = self.table.setdefault((line["name"], procs), {})
        by_peer.setdefault(peer, Samples(line["unit"])).add(
            round_number, line, machine)

    def failed(self, workload, procs, peer):
        return f"{workload} on {procs}: {peer}" in self.failures

    def fail(self, workload, procs, peer, why):
        """Drops the peer's samples: no figures from a program that fails some
        of the time."""
        self.failures[f"{workload} on {procs}: {peer}"] = why
        for (result, on), by_peer in self.table.items():
            if on == procs and result.partition(".")[0] == workload:
                by_peer.pop(peer, None)

    def peers(self):
        """All that have a sample, in the order of the machine's versions."""
        seen = {name for by_peer in self.table.values() for name in by_peer}
        return [name for name in self.machine["versions"] if name in seen]

    def get(self, result, procs, peer):
        return self.table.get((result, procs), {}).get(peer)

    def as_json(self):
        return {"machine": self.machine, "rounds": self.rounds,
                "samples": [{"result": result, "procs": procs,
                             "peers": {n: s.as_json() for n, s in by_peer.items()}}
                            for (result, procs), by_peer in self.table.items()],
                "failures": self.failures}

    def write(self, path, more):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**self.as_json(), **more}, indent=1) + "\n")

    def read(self, path):
        """Adds what a file holds; of two figures of the same thing, the one
        read last stays. Runs on different machines do not mix."""
        try:
            data = json.loads(Path(path).read_text())
        except (OSError, ValueError) as error:
            raise Failure(f"cannot read {path}: {error}") from None
        mine = self.machine
        if mine and any(mine[k] != data["machine"][k]
                        for k in ("cpu", "cpus", "kernel")):
            raise Failure(f"{path} is from another machine")
        self.machine = data["machine"] | {"versions": {
            **(mine["versions"] if mine else {}), **data["machine"]["versions"]}}
        self.rounds = data["rounds"]
        for row in data["samples"]:
            by_peer = self.table.setdefault((row["result"], row["procs"]), {})
            for name, samples in row["peers"].items():
                by_peer[name] = Samples.from_json(samples)
        self.failures |= data["failures"]


def cpu_model():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "CPU part")):
            return line.partition(":")[2].strip()
    return platform.machine()


def describe_machine(peers):
    return {
        "date": datetime.datetime.now().astimezone().isoformat("T", "seconds"),
        "cpu": cpu_model(), "cpus": os.cpu_count(),
        "kernel": f"{platform.system()} {platform.release()} "
                  f"{platform.machine()}",
        "load": os.getloadavg()[0],
        "versions": {peer.name: peer.version for peer in peers}}


def known_figures():
    return json.loads((BENCH / "known.json").read_text())
