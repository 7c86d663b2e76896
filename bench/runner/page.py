"""The page: everything that was measured, in one file without outside parts."""

from html import escape

from .plots import STYLE, latency_chart, peer_class, ratio_bars, scaling_chart
from .peers import TITLES
from .results import known_figures
from .comparing import GOAL_PROCS, better

# What README.md shows: a few that say something to anybody.
HEADLINES = ("yield", "spawn", "fib", "skynet", "pingpong", "prodcons",
             "buffered", "manytomany", "select.wait", "sieve", "waitgroup",
             "semaphore", "mutex", "context.tree", "timers.stop",
             "timers.sleep.p99", "lateness.sleep.p99", "echo.100", "http.100", "fileread")

CSS = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; color: #1f2933; background: #fff; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; }
table { border-collapse: collapse; font-size: 13px; }
td, th { padding: .15rem .7rem .15rem 0; text-align: left; vertical-align: top; }
th { border-bottom: 1px solid #98a4b0; } td.n { text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.area td { font-weight: 600; padding-top: .7rem; }
.whole { white-space: nowrap; }
.met { color: #217a2b; } .missed { color: #b23c17; } .faint { color: #6b7785; }
.charts { display: flex; flex-wrap: wrap; gap: 12px; }
.big { font-size: 1.6rem; font-weight: 600; } .key svg { vertical-align: middle; }
.wide { overflow-x: auto; }
@media (prefers-color-scheme: dark) { body { color: #e4e8ec; background: #14181c; }
.met { color: #74c46f; } .missed { color: #f08c4b; } .faint { color: #98a4b0; } }
"""


def title(peer):
    return TITLES.get(peer, peer)


def row_of(*cells, numbers=()):
    return "<tr>" + "".join(
        f'<td{" class=n" if i in numbers else ""}>{cell}</td>'
        for i, cell in enumerate(cells)) + "</tr>"


def table(head, rows):
    return ('<div class="wide"><table><tr>'
            + "".join(f"<th>{escape(h)}</th>" for h in head) + "</tr>\n"
            + "\n".join(rows) + "</table></div>\n")


# ----------------------------------------------------------------- sections


def goals_by_row(comparison):
    """{(result, procs): the ratio wanted against Go}"""
    wanted = {}
    for goal in comparison.goals:
        words = goal["goal"].split()
        if words[0] == ">=" and words[-1] == "go":
            wanted[goal["what"], goal["procs"]] = float(words[1])
    return wanted


def bars_against(comparison, peer, only=None, note=""):
    """The chart of all results, or of some, against a peer; None if there are
    none."""
    goals = goals_by_row(comparison) if peer == "go" else {}
    rows = {}
    for (result, procs, name), found in comparison.by_key.items():
        if name == peer and procs in GOAL_PROCS and (not only or result in only):
            rows.setdefault(result, []).append(
                (procs, found, goals.get((result, procs))))
    if not rows:
        return None
    ordered = sorted(rows.items(), key=lambda r: -max(c["ratio"] for _, c, _ in r[1]))
    return ratio_bars(ordered, f"goro: times better than {title(peer)}", note)


def bars_section(comparison):
    parts = []
    for peer in comparison.others:
        chart = bars_against(comparison, peer, note="line: 95 % interval")
        if chart:
            parts.append(f"<h3>Beside {escape(title(peer))}</h3>{chart.svg()}")
    return "<h2>Ratios</h2>" + "\n".join(parts) if parts else ""


def key(peers, dashes=False):
    """What the colours of lines mean."""
    def sample(cls):
        return ('<svg width="26" height="10"><line x1="0" y1="5" x2="24" y2="5" '
                f'class="line {cls}"/></svg>')
    items = [f"{sample(peer_class(p))} {escape(title(p))}" for p in peers]
    if dashes:
        items.append(f"{sample('pthreads dash')} on 1 processor, full: on 2")
    return '<p class="key">' + " &emsp; ".join(items) + "</p>"


def scaling_section(comparison):
    results, charts = comparison.results, []
    peers = [p for p in ("goro", "go") if p in results.peers()]
    for result in dict.fromkeys(result for result, _ in results.table):
        base = results.get(result, 1, "goro")
        by_peer = {}
        for peer in peers:
            points = [(procs, better(s.unit, s.median(), base.median()))
                      for (name, procs), row in results.table.items() if base
                      and name == result and (s := row.get(peer))]
            if len(points) > 2:
                by_peer[peer] = points
        if by_peer:
            charts.append(scaling_chart(result, by_peer).svg())
    if not charts:
        return ""
    return ("<h2>Scaling</h2><p>Speed by number of processors, 1 being goro's on "
            f"one. The machine has {results.machine['cpus']} CPUs; beyond that, "
            "nothing should be lost.</p>" + key(peers)
            + f'<div class="charts">{"".join(charts)}</div>')


def latency_section(comparison):
    results, charts, peers = comparison.results, [], {}
    for result in dict.fromkeys(result for result, _ in results.table):
        lines = [(peer, procs, samples.distribution())
                 for (name, procs), row in results.table.items()
                 if name == result and procs in GOAL_PROCS
                 for peer, samples in row.items() if samples.quantiles]
        if lines:
            peers |= dict.fromkeys(peer for peer, _, _ in lines)
            charts.append(latency_chart(result.removesuffix(".p99"), lines).svg())
    if not charts:
        return ""
    return ("<h2>Latencies</h2><p>How late, or how long, by share of the samples: "
            "the right end is the worst in a thousand.</p>" + key(peers, True)
            + f'<div class="charts">{"".join(charts)}</div>')


def goals_section(comparison):
    rows, area = [], None
    for goal in comparison.goals:
        if goal["area"] != area:
            area = goal["area"]
            rows.append(f'<tr class="area"><td colspan=5>{escape(area)}</td></tr>')
        cls = goal["verdict"].rstrip("?").split()[0]
        got = escape(goal["got"])
        if goal.get("list"):
            got += f': <span class="faint">{escape(", ".join(goal["list"]))}</span>'
        rows.append(row_of(escape(goal["what"]), goal["procs"],
                           f'<span class="whole">{escape(goal["goal"])}</span>',
                           f'<span class="whole {cls}">{goal["verdict"]}</span>',
                           got, numbers=(1,)))
    return ("<h2>Goals</h2><p>A ratio is how many times better goro is, with its "
            "95 % interval; ? means that the noise spans the goal. * marks a "
            "figure that was not measured in this run.</p>"
            + table(("", "Ps", "goal", "", "got"), rows))


def figure_cells(samples):
    if not samples:
        return "-", ""
    digits = 1 if samples.median() < 1000 else 0
    tip = ", ".join(f"{v:.4g}" for v in samples.values.values())
    return (f'<span title="{tip}">{samples.median():,.{digits}f} '
            f"{escape(samples.unit)}</span>", f"{samples.spread():.0%}")


def table_section(comparison):
    rows = []
    for row in comparison.rows:
        found = row["comparison"]
        rows.append(row_of(
            escape(row["result"]), row["procs"], *figure_cells(row["goro"]),
            escape(title(row["peer"] or "")), *figure_cells(row["theirs"]),
            f"{found['ratio']:.2f}" if found else "-",
            f"{found['low']:.2f} to {found['high']:.2f}" if found else "",
            numbers=(1, 2, 3, 5, 6, 7, 8)))
    for figure in comparison.known():
        rows.append(row_of(
            escape(figure["result"]), figure["procs"],
            *figure_cells(figure["goro"]), escape(figure["peer"]) + "*",
            f"{figure['value']:,} {figure['unit']}", "",
            f"{figure['ratio']:.2f}*", escape(figure.get("note", "")),
            numbers=(1, 2, 3, 5, 6, 7, 8)))
    return ("<h2>All figures</h2><p>Medians, with the distance between the "
            "quartiles; all samples under the pointer. * not part of this run: "
            f"{escape(known_figures()['where'])}.</p>"
            + table(("result", "Ps", "goro", "", "peer", "", "", "ratio", "95 %"),
                    rows))


def summary_section(comparison):
    means = []
    for procs in GOAL_PROCS:
        mean, count = comparison.mean_over_workloads("go", procs)
        if mean:
            means.append(f'<span class="big">{mean:.2f}</span> times Go over '
                         f"{count} workloads on {procs} processor"
                         f"{'s' if procs > 1 else ''}")
    noise = "".join(map(noise_line, comparison.noise))
    return ("<p>Geometric mean: " + ", ".join(means) + ".</p>" if means else "") + (
        f'<p class="faint">Noise:</p><ul class="faint">{noise}</ul>' if noise else "")


def noise_line(text):
    """What it is, and where only for those who ask."""
    what, _, where = text.partition(": ")
    if not where:
        return f"<li>{escape(what)}</li>"
    return (f"<li><details><summary>{escape(what)}</summary>{escape(where)}"
            "</details></li>")


def machine_line(machine, separator, peers=None):
    versions = (f"{title(k)} {v}" for k, v in machine["versions"].items()
                if not peers or k in peers)
    return separator.join([
        f"{machine['cpus']} x {machine['cpu']}, {machine['kernel']}",
        ", ".join(versions), machine["date"][:10]])


def write_page(path, comparison):
    machine = comparison.results.machine
    body = "\n".join((
        "<h1>goro beside the others</h1>",
        f'<p class="faint">{escape(machine_line(machine, "; "))}; '
        f"{comparison.results.rounds} rounds</p>",
        summary_section(comparison), bars_section(comparison),
        scaling_section(comparison), latency_section(comparison),
        goals_section(comparison), table_section(comparison)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>goro: benchmarks</title>\n<style>{CSS}{STYLE}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n")


def write_picture(path, comparison):
    """One chart that stands alone, small enough to keep in the repository."""
    chart = bars_against(
        comparison, "go", HEADLINES,
        machine_line(comparison.results.machine, "; ", ("goro", "go")))
    if chart:
        path.write_text(chart.svg(style=True))
