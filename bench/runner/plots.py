"""Charts, as SVG that needs nothing else: no scripts, no fonts, no files.

Colours are classes, and STYLE defines them for light and for dark, so that the
same chart stands alone (README.md shows one) and in the page.
"""

import math
from html import escape

STYLE = """
svg { font: 12px system-ui, sans-serif; }
svg text { fill: #1f2933; } svg .faint { fill: #6b7785; }
svg .grid { stroke: #d9dee4; stroke-width: 1; } svg .axis { stroke: #6b7785; stroke-width: 1; }
svg .end { text-anchor: end; } svg .middle { text-anchor: middle; }
svg .title { font-weight: 600; }
.f1 { fill: #0f6e84; } .f2 { fill: #58b4c6; } .whisker { stroke: #1f2933; stroke-width: 1; }
.f3 { fill: #7a52a8; } .f4 { fill: #a88a1b; } .f5 { fill: #98a4b0; }
.worse { fill: #c2571a; } .goal { stroke: #c2571a; stroke-width: 2; }
.line { fill: none; stroke-width: 2; }
.goro { stroke: #0f6e84; } .go { stroke: #c2571a; } .boost { stroke: #7a52a8; }
.pthreads { stroke: #6b7785; } .tbb { stroke: #3f8f3a; } .libuv { stroke: #a88a1b; }
.bare { stroke: #b0436e; }
.dash { stroke-dasharray: 5 3; }
@media (prefers-color-scheme: dark) {
svg text { fill: #e4e8ec; } svg .faint { fill: #98a4b0; }
svg .grid { stroke: #333c45; } svg .axis { stroke: #98a4b0; }
.f1 { fill: #3aa6be; } .f2 { fill: #1d5f6e; } .whisker { stroke: #e4e8ec; }
.f3 { fill: #b48be0; } .f4 { fill: #d9bb4a; } .f5 { fill: #6b7785; }
.goro { stroke: #3aa6be; } .go { stroke: #f08c4b; } .boost { stroke: #b48be0; }
.pthreads { stroke: #98a4b0; } .tbb { stroke: #74c46f; } .libuv { stroke: #d9bb4a; }
.bare { stroke: #e07fa4; }
}
""".strip()

KNOWN_CLASSES = {"goro", "go", "boost", "pthreads", "tbb", "libuv", "bare"}


class Drawing:
    """A list of SVG elements with a size."""

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.parts = []

    def line(self, x1, y1, x2, y2, cls):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" '
                          f'y2="{y2:.1f}" class="{cls}"/>')

    def rect(self, x, y, w, h, cls, tip=""):
        title = f"<title>{escape(tip)}</title>" if tip else ""
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(w, .5):.1f}" '
                          f'height="{h:.1f}" class="{cls}">{title}</rect>')

    def text(self, x, y, text, cls=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{cls}">'
                          f"{escape(text)}</text>")

    def path(self, points, cls, tip=""):
        title = f"<title>{escape(tip)}</title>" if tip else ""
        d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.parts.append(f'<path d="{d}" class="{cls}">{title}</path>')

    def place(self, other, x, y):
        """Another drawing, with its upper left corner there."""
        self.parts += [f'<g transform="translate({x} {y})">', *other.parts, "</g>"]

    def svg(self, style=False, more=""):
        """style: with STYLE in it, and more."""
        body = "\n".join(self.parts)
        css = f"<style>{STYLE}{more}</style>\n" if style else ""
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" '
                f'height="{self.height}" viewBox="0 0 {self.width} {self.height}" '
                f'role="img">\n{css}{body}\n</svg>\n')


def log_scale(low, high, start, length):
    """A function from values to places, logarithmic."""
    a, b = math.log(low), math.log(high)

    def place(value):
        clipped = min(max(value, low), high)
        return start + (math.log(clipped) - a) / (b - a) * length
    return place


def powers(base, low, high):
    """The powers of base from one not above low to one not below high."""
    first = math.floor(math.log(low, base) + 1e-9)
    last = math.ceil(math.log(high, base) - 1e-9)
    return [base ** i for i in range(first, max(last, first + 1) + 1)]


def round_ticks(most):
    """From 0 to a round number that is not below most, in at most six steps."""
    step = 10 ** math.floor(math.log10(most))
    step = next(step * f for f in (.2, .5, 1, 2) if most / (step * f) <= 5)
    return [i * step for i in range(math.ceil(most / step) + 1)]


def number(value):
    """Short, for axes: 0.5, 4, 200, 20k."""
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if value >= 1e4 else f"{value:g}"


# ------------------------------------------------------------ bars of ratios

BAR, GAP, LABELS = 8, 8, 130
MAX_TICKS = 12


def ratio_bars(rows, title, note=""):
    """rows: [(label, [(procs, comparison, goal or None)])]. Bars from 1, to the
    right if goro is ahead; one for each number of processors; a whisker for the
    interval, a mark for the goal."""
    ratios = [c[k] for _, bars in rows for _, c, _ in bars
              for k in ("ratio", "low", "high")]
    ratios += [goal for _, bars in rows for _, _, goal in bars if goal]
    ticks = powers(2, min([1, *ratios]), max([2, *ratios]))
    heights = [len(bars) * BAR + GAP for _, bars in rows]
    top = 58 if note else 42
    d = Drawing(760, top + sum(heights) + 8)
    place = log_scale(ticks[0], ticks[-1], LABELS, d.width - LABELS - 80)
    d.text(0, 14, title, "title")
    ratio_key(d, [procs for procs, _, _ in max((b for _, b in rows), key=len)],
              any(goal for _, bars in rows for _, _, goal in bars))
    if note:
        d.text(0, 31, note, "faint")
    every = 1 + len(ticks) // MAX_TICKS
    for tick in ticks:
        if round(math.log2(tick)) % every:
            continue
        d.text(place(tick), top - 8, times(tick), "faint middle")
        d.line(place(tick), top - 4, place(tick), d.height - 6,
               "axis" if tick == 1 else "grid")
    y = top
    for (label, bars), height in zip(rows, heights):
        d.text(LABELS - 8, y + (height - GAP) / 2 + 4, label, "end")
        for number_of_bar, (procs, found, goal) in enumerate(bars):
            ratio_bar(d, place, y + number_of_bar * BAR, label, procs, found,
                      goal, number_of_bar)
        d.text(d.width - 2, y + (height - GAP) / 2 + 4,
               " / ".join(short(c["ratio"]) for _, c, _ in bars), "end faint")
        y += height
    return d


def times(power):
    """For the axis: 4x, 1/4x."""
    return f"{power:g}x" if power >= 1 else f"1/{1 / power:g}x"


def short(ratio):
    return f"{ratio:.2g}" if ratio < 9.95 else f"{ratio:.0f}"


def ratio_key(d, procs, goals):
    """What the bars and marks mean, at the top right."""
    x = d.width - 110 * len(procs) - 70 - (60 if goals else 0)
    for index, n in enumerate(procs):
        d.rect(x, 6, 14, BAR, f"f{index % 2 + 1}")
        d.text(x + 19, 14, f"{n} processor{'s' if n > 1 else ''}")
        x += 110
    d.rect(x, 6, 14, BAR, "worse")
    d.text(x + 19, 14, "behind")
    if goals:
        d.line(x + 75, 4, x + 75, 16, "goal")
        d.text(x + 81, 14, "goal")


def ratio_bar(d, place, y, label, procs, found, goal, index):
    ratio = found["ratio"]
    left, right = sorted((place(1), place(ratio)))
    cls = "worse" if ratio < 1 else f"f{index % 2 + 1}"
    d.rect(left, y, right - left, BAR - 1, cls,
           f"{label} on {procs}: {ratio:.2f} "
           f"({found['low']:.2f} to {found['high']:.2f})"
           + (f", goal {goal:g}" if goal else ""))
    middle = y + BAR / 2 - .5
    d.line(place(found["low"]), middle, place(found["high"]), middle, "whisker")
    if goal:
        d.line(place(goal), y - 1, place(goal), y + BAR, "goal")


# ------------------------------------------------------------------- curves


def curves(lines, title, ticks_x, ticks_y, size=(240, 170)):
    """lines: [(class, name, [(x, y)])]; ticks: [(place, text)], linear. One
    small chart; the caller has done any logarithm."""
    d = Drawing(*size)
    left, top, right, bottom = 50, 26, size[0] - 8, size[1] - 22
    (x0, _), *_, (x1, _) = ticks_x
    (y0, _), *_, (y1, _) = ticks_y

    def at(x, y):
        return (left + (x - x0) / (x1 - x0) * (right - left),
                bottom - (min(max(y, y0), y1) - y0) / (y1 - y0) * (bottom - top))
    d.text(0, 13, title, "title")
    for x, text in ticks_x:
        d.line(*at(x, y0), *at(x, y1), "grid")
        d.text(at(x, y0)[0], bottom + 15, text, "faint middle")
    for y, text in ticks_y:
        d.line(*at(x0, y), *at(x1, y), "grid")
        d.text(left - 5, at(x0, y)[1] + 4, text, "faint end")
    for cls, name, points in lines:
        d.path([at(x, y) for x, y in points], f"line {cls}", name)
    return d


def peer_class(peer):
    return peer if peer in KNOWN_CLASSES else "pthreads"


def scaling_chart(result, by_peer):
    """by_peer: {peer: [(procs, speed)]}, speed relative to goro on one."""
    most = max(s for points in by_peer.values() for _, s in points)
    ticks_y = [(tick, f"{tick:g}") for tick in round_ticks(most)]
    procs = sorted({p for points in by_peer.values() for p, _ in points})
    ticks_x = [(math.log2(p), str(p)) for p in procs]
    lines = [(peer_class(peer), peer, [(math.log2(p), s) for p, s in points])
             for peer, points in by_peer.items()]
    return curves(lines, result, ticks_x, ticks_y)


SHARES = ((0, "0"), (.5, "50"), (.9, "90"), (.99, "99"), (.999, "99.9 %"))


def latency_chart(title, lines):
    """lines: [(peer, procs, [(share, microseconds)])]. Shares spread out towards
    the worst; microseconds logarithmic."""
    def nines(share):
        return -math.log10(1 - share)
    values = [max(v, .1) for _, _, points in lines for s, v in points if s <= .999]
    ticks_y = [(math.log10(p), micro(p)) for p in powers(10, min(values), max(values))]
    ticks_x = [(nines(s), text) for s, text in SHARES]
    drawn = [(peer_class(peer) + (" dash" if procs == 1 else ""),
              f"{peer} on {procs}",
              [(nines(s), math.log10(max(v, .1))) for s, v in points if s <= .999])
             for peer, procs, points in lines]
    return curves(drawn, title, ticks_x, ticks_y, size=(370, 230))


def micro(us):
    if us >= 1e6:
        return f"{us / 1e6:g} s"
    return f"{us / 1e3:g} ms" if us >= 1e3 else f"{us:g} us"
