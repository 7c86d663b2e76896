"""Throughput and latency by GOMAXPROCS, and the controller on a load that changes."""
from runner.plots import Drawing, curves, number, round_ticks

COMMANDS = [["gomaxprocs", "sweep"], ["gomaxprocs", "control"], ["gomaxprocs", "model"]]
WIDTH, HALF = 640, 315


def ticks(values):
    return [(tick, number(tick)) for tick in round_ticks(max(values))]


def by_procs(table, load, column, title, cls):
    points = [(int(r["GOMAXPROCS"]), float(r[column])) for r in table.where(load=load)]
    return curves([(cls, title, points)], title, [(p, str(p)) for p, _ in points],
                  ticks([v for _, v in points]), size=(HALF, 150))


def story(rows):
    """GOMAXPROCS as steps, and the rate, over time."""
    times = [float(r["ms"]) / 1000 for r in rows]
    procs = [int(r["GOMAXPROCS"]) for r in rows]
    rates = [float(r["done/s"]) for r in rows]
    steps, last = [], 0
    for t, p in zip(times, procs):
        steps += [(last, p), (t, p)]
        last = t
    seconds = [(i, f"{i} s") for i in range(int(last) + 2)]
    top = curves([("goro", "GOMAXPROCS", steps)], "The controller, at a load that changes: GOMAXPROCS",
                 seconds, [(i, str(i)) for i in range(max(procs) + 1)], size=(WIDTH, 130))
    below = curves([("go", "done", list(zip(times, rates)))], "... and what is done a second",
                   seconds, ticks(rates), size=(WIDTH, 130))
    return top, below


def pictures(tables):
    sweep, d = tables["sweep"], Drawing(WIDTH, 620)
    for i, (load, cls) in enumerate((("compute", "goro"), ("io", "boost"))):
        d.place(by_procs(sweep, load, "done/s", f"{load}: done a second", cls), i * (HALF + 10), 0)
        d.place(by_procs(sweep, load, "99_%_us", f"{load}: 99 % take less than, us", cls),
                i * (HALF + 10), 165)
    d.text(WIDTH / 2, 330, "by GOMAXPROCS", "faint middle")
    top, below = story(tables["story"].rows)
    d.place(top, 0, 345)
    d.place(below, 0, 485)
    return {"gomaxprocs.svg": d}
