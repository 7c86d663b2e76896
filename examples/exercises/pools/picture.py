"""Latency of each pool under each pattern, and the throughput of small tasks."""
from runner.plots import Drawing, log_scale

COMMANDS = [["pools", "rate"], ["pools", "patterns"]]
WIDTH, LEFT, RIGHT, ROW = 640, 80, 60, 18
TITLES = {"steady": "steady: evenly, each waits 1 ms",
          "bursty": "bursty: 500 at once, each waits 1 ms",
          "heavy_tail": "heavy tail: evenly, some wait 100 ms"}


def latencies(title, rows):
    """From the median to the 99th percentile, and a mark for the longest."""
    d = Drawing(WIDTH, 46 + ROW * len(rows))
    place = log_scale(.5, 200, LEFT, WIDTH - LEFT - RIGHT)
    d.text(0, 14, title, "title")
    for tick in (.5, 1, 2, 5, 10, 20, 50, 100, 200):
        d.line(place(tick), 40, place(tick), d.height - 4, "grid")
        d.text(place(tick), 34, f"{tick:g} ms", "faint middle")
    for i, row in enumerate(rows):
        y = 42 + i * ROW
        half, late, most = (float(row[c]) for c in ("half_ms", "99_%_ms", "most_ms"))
        d.text(LEFT - 8, y + 11, row["pool"].replace("_", " "), "end")
        d.rect(place(half), y + 2, place(late) - place(half), 10, "f1",
               f"half within {half} ms, 99 % within {late} ms, all within {most} ms")
        d.line(place(most), y + 1, place(most), y + 13, "goal")
        if int(row["refused"]):
            d.text(WIDTH - RIGHT + 8, y + 11, f"-{row['refused']}", "faint")
    return d


def rates(rows):
    d = Drawing(WIDTH, 26 + ROW * len(rows))
    most = max(float(r["tasks/s"]) for r in rows)
    d.text(0, 14, "small tasks: thousands a second", "title")
    for i, row in enumerate(rows):
        y, rate = 24 + i * ROW, float(row["tasks/s"])
        d.text(LEFT - 8, y + 11, row["pool"].replace("_", " "), "end")
        d.rect(LEFT, y + 2, rate / most * (WIDTH - LEFT - RIGHT), 10, "f2")
        d.text(LEFT + rate / most * (WIDTH - LEFT - RIGHT) + 6, y + 11, f"{rate / 1000:,.0f}", "faint")
    return d


def pictures(tables):
    d, y = Drawing(WIDTH, 0), 24
    d.rect(LEFT, 4, 40, 10, "f1")
    d.text(LEFT + 46, 13, "from the median to the 99th percentile")
    d.line(LEFT + 300, 3, LEFT + 300, 15, "goal")
    d.text(LEFT + 308, 13, "the longest")
    for pattern, title in TITLES.items():
        part = latencies(title, tables["patterns"].where(pattern=pattern))
        d.place(part, 0, y)
        y += part.height + 8
    part = rates(tables["rate"].rows)
    d.place(part, 0, y)
    d.height = y + part.height
    return {"pools.svg": d}
