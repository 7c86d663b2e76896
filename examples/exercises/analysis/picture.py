"""The timelines: who ran on which processor, from the traces.

`goro trace --perfetto` writes a trace as JSON. Of each a window is kept, of a length that
fits the workload: what happens to hogs in 60 ms happens to connections in one.
"""
import json
import os
import pathlib
import re
import subprocess
import tempfile

from runner.plots import Drawing

WORKLOADS = {       # window: from which share of the trace on, how many us
    "compute": (0, 100000), "tasks": (0, 2000), "tree": (0, 2000), "io": (.5, 600),
    "blocking": (0, 60000), "mixed": (.1, 20000),
}
WIDTH, LEFT, ROW, GAP = 640, 70, 16, 3
COLUMNS = WIDTH - LEFT - 10
SEEN = 8            # half pixels: what is shorter is not told apart
KINDS = {"hog": "f1", "task": "f2", "fork_task": "f2", "client": "f3", "server": "f4",
         "blocker": "worse", "start": "f5"}


def goro(*words):
    tool = os.environ.get("GORO", "goro")
    return subprocess.run([tool, *words], text=True, check=True, stdout=subprocess.PIPE).stdout


def spans_of(events, low, high):
    """[(P, from, to, name)] of the window. Neighbours of one name are put together if they are
    one goroutine's, or too short for anybody to see them apart."""
    found, least = [], (high - low) / COLUMNS / 2
    for event in events:
        if event["ph"] != "X" or event["pid"] != 1 or event["name"] == "in a call":
            continue
        start, end = max(event["ts"], low), min(event["ts"] + event["dur"], high)
        if end > start:
            found.append((event["tid"] - 1, start - low, end - low, event["name"],
                          event["args"]["goroutine"]))
    found.sort()
    merged = []
    for p, start, end, name, g in found:
        last = merged[-1] if merged else None
        if (last and last[0] == p and last[3] == name and start - last[2] < least
                and (last[4] == g or min(end - start, last[2] - last[1]) < SEEN * least)):
            last[2], last[4] = end, g
        else:
            merged.append([p, start, end, name, g])
    return [s[:4] for s in merged if s[2] - s[1] >= least]


def ready_of(events, low, high, steps=70):
    """How many goroutines were ready, on average, in each step of the window."""
    sums, step = [0.] * steps, (high - low) / steps
    for event in events:
        if event["ph"] != "X" or event["pid"] != 2 or event["name"] != "runnable":
            continue
        start, end = max(event["ts"], low) - low, min(event["ts"] + event["dur"], high) - low
        for i in range(int(start / step), min(int(end / step) + 1, steps) if end > start else 0):
            sums[i] += max(0, min(end, (i + 1) * step) - max(start, i * step))
    return [total / step for total in sums]


def measure(run):
    with tempfile.TemporaryDirectory() as folder:
        decisions = run("analysis")
        run("analysis", "-t", folder)
        lines = ["== states", "workload running_% ready_% waiting_% in_a_call_% moved_to_another_P"]
        spans = ["== timeline", "workload P from_us to_us name"]
        ready = ["== ready", "workload step ready"]
        for workload, (share, window) in WORKLOADS.items():
            path = str(pathlib.Path(folder) / workload)
            text = goro("trace", path + ".trace")
            states = [re.search(rf"^  {state} .*?(\d+) %", text, re.M)
                      for state in ("running", "runnable", "waiting", "in a call")]
            moved = re.search(r"moved to another P ([\d,]+)", text)
            lines.append(" ".join([workload, *(s.group(1) if s else "0" for s in states),
                                   moved.group(1).replace(",", "")]))
            goro("trace", "--perfetto", path + ".json", path + ".trace")
            events = json.load(open(path + ".json"))["traceEvents"]
            first = min(e["ts"] for e in events if e["ph"] == "X" and e["pid"] == 1)
            last = max(e["ts"] for e in events if e["ph"] == "X" and e["pid"] == 1)
            low = first + share * (last - first)
            spans += [f"{workload} {p} {a:.1f} {b:.1f} {name}"
                      for p, a, b, name in spans_of(events, low, low + window)]
            ready += [f"{workload} {i} {n:.1f}"
                      for i, n in enumerate(ready_of(events, low, low + window))]
        return "\n".join([decisions, *lines, "", *spans, "", *ready, ""])


def time_text(us):
    return f"{us / 1000:g} ms" if us >= 1000 else f"{us:g} us"


def timeline(workload, window, spans, ready):
    procs = 1 + max([1, *(int(row["P"]) for row in spans)])
    d = Drawing(WIDTH, 20 + procs * (ROW + GAP) + 46)
    scale = COLUMNS / window
    d.text(0, 12, workload, "title")
    d.text(WIDTH - 10, 12, time_text(window), "faint end")
    for p in range(procs):
        y = 20 + p * (ROW + GAP)
        d.text(LEFT - 8, y + 12, f"P{p}", "end")
        d.line(LEFT, y + ROW, LEFT + COLUMNS, y + ROW, "grid")
        for row in spans:
            if int(row["P"]) == p:
                a, b = float(row["from_us"]), float(row["to_us"])
                wide = (b - a) * scale
                d.rect(LEFT + a * scale, y, wide - (1 if wide > 3 else 0), ROW,
                       KINDS.get(row["name"], "f5"), f"{row['name']}: {b - a:.0f} us")
    draw_ready(d, 20 + procs * (ROW + GAP) + 2, [float(row["ready"]) for row in ready])
    return d


def draw_ready(d, y, ready):
    height, most = 26, max([1, *ready])
    d.text(LEFT - 8, y + 12, "ready", "end")
    d.text(LEFT - 8, y + 25, f"0..{most:.0f}", "faint end")
    d.line(LEFT, y + height, LEFT + COLUMNS, y + height, "axis")
    step = COLUMNS / max(1, len(ready))
    d.path([(LEFT + (i + .5) * step, y + height - n / most * height)
            for i, n in enumerate(ready)], "line pthreads")


def pictures(tables):
    d = Drawing(WIDTH, 0)
    x = LEFT
    for name, cls in (("hog", "f1"), ("task", "f2"), ("client", "f3"), ("server", "f4"),
                      ("blocker", "worse"), ("who starts them", "f5")):
        d.rect(x, 4, 12, 10, cls)
        d.text(x + 16, 13, name)
        x += 80
    y = 30
    for workload, (_, window) in WORKLOADS.items():
        part = timeline(workload, window, tables["timeline"].where(workload=workload),
                        tables["ready"].where(workload=workload))
        d.place(part, 0, y)
        y += part.height
    d.height = y
    return {"timeline.svg": d}
