"""Memory by requests served; what a leaked goroutine takes, at first and later."""
from runner.plots import Drawing, curves, round_ticks

COMMANDS = [["leaks", "check"], ["leaks", "cost"], ["leaks", "growth"]]
WIDTH, LEFT, ROW = 640, 110, 22


def growth(table):
    lines = []
    for form, cls in (("leaks", "go"), ("leak-proof", "goro")):
        lines.append((cls, form, [(int(r["requests"]) / 1000, float(r["MB"]))
                                  for r in table.where(form=form)]))
    thousands = max(x for _, _, points in lines for x, _ in points)
    most = max(y for _, _, points in lines for _, y in points)
    d = curves(lines, "MB of memory, by thousands of requests served",
               [(x, f"{x:g}") for x in range(0, int(thousands) + 1, 5)],
               [(y, f"{y:g}") for y in round_ticks(most)], size=(WIDTH, 200))
    d.text(150, 60, "leaks: 1 goroutine a request")
    d.line(120, 56, 144, 56, "line go")
    d.text(150, 78, "leak-proof")
    d.line(120, 74, 144, 74, "line goro")
    return d


def cost(table):
    d = Drawing(WIDTH, 44 + ROW * len(table.rows))
    scale = (WIDTH - LEFT - 120) / max(float(r["bytes_each"]) for r in table.rows)
    d.text(0, 14, "Bytes for each leaked goroutine", "title")
    for x, cls, what in ((LEFT + 190, "f1", "at first"), (LEFT + 280, "f2", "once it has waited for long")):
        d.rect(x, 5, 12, 10, cls)
        d.text(x + 17, 14, what)
    for i, row in enumerate(table.rows):
        y, first, later = 28 + i * ROW, float(row["bytes_each"]), float(row["bytes_later"])
        d.text(LEFT - 8, y + 13, row["pattern"].replace("_", " "), "end")
        d.rect(LEFT, y, first * scale, 8, "f1")
        d.rect(LEFT, y + 9, max(later, 0) * scale, 8, "f2")
        d.text(LEFT + first * scale + 6, y + 13, f"{first:,.0f} / {later:,.0f}", "faint")
    return d


def pictures(tables):
    d = Drawing(WIDTH, 0)
    d.place(growth(tables["growth"]), 0, 0)
    part = cost(tables["cost"])
    d.place(part, 0, 215)
    d.height = 215 + part.height
    return {"leaks.svg": d}
