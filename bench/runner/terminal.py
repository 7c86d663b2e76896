"""The tables on the terminal."""

import sys

from .common import warn
from .results import known_figures


def print_machine(machine):
    print(f"{machine['date']}  {machine['cpus']} x {machine['cpu']}, "
          f"{machine['kernel']}")
    print(", ".join(f"{k}: {v}" for k, v in machine["versions"].items()))


def cell(samples):
    if not samples:
        return "-"
    return (f"{samples.median():,.{1 if samples.median() < 1000 else 0}f} "
            f"{samples.unit} {samples.spread() * 100:3.0f}%")


def print_columns(lines, right):
    """Columns as wide as they have to be; those in right to the right."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    print()
    for line in lines:
        print("  ".join(text.rjust(w) if i in right else text.ljust(w)
                        for i, (text, w) in enumerate(zip(line, widths))).rstrip())


def print_rows(comparison):
    lines = [("result", "P", "goro", "peer", "", "ratio", "95 %")]
    last = None
    for row in comparison.rows:
        found = row["comparison"]
        ours = cell(row["goro"])
        key = row["result"], str(row["procs"]), ours
        lines.append((
            *(key if key != last else ("", "", "")), row["peer"] or "",
            cell(row["theirs"]) if row["peer"] else "",
            f"{found['ratio']:.2f}" if found else "-",
            f"{found['low']:.2f}-{found['high']:.2f}" if found else ""))
        last = key
    print_columns(lines, right=(1, 2, 4, 5, 6))


def print_known(comparison):
    lines = [("result", "P", "goro", "given figure", "", "ratio")]
    for figure in comparison.known():
        lines.append((figure["result"], str(figure["procs"]),
                      cell(figure["goro"]), figure["peer"],
                      f"{figure['value']:,} {figure['unit']}",
                      f"{figure['ratio']:.2f}"))
    if len(lines) > 1:
        print_columns(lines, right=(1, 2, 4, 5))
        print(f"(given: {known_figures()['where']})")


def print_goals(comparison, everything):
    """All goals, or those that the run has something to say about."""
    lines = [("", "P", "goal", "", "got")]
    for goal in comparison.goals:
        if everything or goal["verdict"] != "not measured":
            lines.append((goal["what"], str(goal["procs"]), goal["goal"],
                          goal["verdict"], goal["got"]))
            lines += [("", "", "", "", text) for text in goal.get("list", [])]
    if len(lines) > 1:
        print_columns(lines, right=(1,))


def print_ablations(rows):
    """rows: of ablating.summary."""
    lines = [("without", "mechanism", "", "goro with it: times as good")]
    for setting, mechanism, verdict, details in rows:
        first, *more = details or [""]
        lines.append((setting, mechanism, verdict, first))
        lines += [("", "", "", text) for text in more]
    print_columns(lines, right=())


def print_all(comparison, everything):
    print_rows(comparison)
    print_known(comparison)
    print_goals(comparison, everything)
    for text in comparison.noise:
        warn(text)
    for where, why in comparison.results.failures.items():
        print(f"FAILED {where}: {why}", file=sys.stderr)
    for mismatch in comparison.mismatches:
        print(f"NOT THE SAME WORK {mismatch}", file=sys.stderr)
