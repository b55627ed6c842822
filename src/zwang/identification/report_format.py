"""Tables and plots of reports, as text and as HTML without scripts."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from zwang.errors import visible

POINTS = 300  # of a plotted line
WIDTH, HEIGHT = 420, 120  # of a plot, in pixels

STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#1c2733}"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .7em;border-bottom:1px solid #dde1e6;"
    "text-align:left;vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}"
    "figure{display:inline-block;margin:.5em}figcaption{font-size:13px}"
)

Table = tuple[str, Sequence[str], list[list[str]]]
"""Title, column heads and rows."""


def interval_text(lower: float, upper: float) -> str:
    """An interval, with as many digits as its width needs."""
    digits = digits_of(lower, upper)
    return f"{lower:.{digits}g} to {upper:.{digits}g}"


def digits_of(lower: float, upper: float) -> int:
    """Significant digits that show two digits of the width of an interval."""
    ratio = max(abs(lower), abs(upper)) / max(upper - lower, 1e-300)
    return int(np.clip(np.ceil(np.log10(max(ratio, 1e-3))) + 2, 2, 15))


def text_of(table: Table) -> str:
    """The table as text in columns."""
    title, heads, rows = table
    cells = [list(heads), *rows]
    widths = [min(60, max(len(row[k]) for row in cells)) for k in range(len(heads))]
    lines = ["  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([title, "-" * len(title), *lines])


def html_of(table: Table) -> str:
    """The table as HTML, with its text escaped."""
    title, heads, rows = table
    head = "".join(f"<th>{html.escape(x)}</th>" for x in heads)
    body = "".join(
        "<tr>"
        + "".join(f"<td{' class=n' if _is_number(x) else ''}>{html.escape(visible(x))}</td>" for x in row)
        + "</tr>"
        for row in rows
    )
    return f"<h2>{html.escape(title)}</h2><table><tr>{head}</tr>{body}</table>"


def _is_number(text: str) -> bool:
    return text.replace("e", "").strip("-+.0123456789") == ""


def figure(name: str, time: np.ndarray, measured: np.ndarray, fitted: np.ndarray) -> str:
    """A plot of measured values and those of a fit over time [s], as inline SVG."""
    rows = np.unique(np.linspace(0, len(time) - 1, POINTS).astype(int))
    low, high = float(min(measured.min(), fitted.min())), float(max(measured.max(), fitted.max()))
    x = WIDTH * (time[rows] - time[0]) / max(float(time[-1] - time[0]), 1e-300)
    lines = []
    for values, color in ((measured, "#98a4b0"), (fitted, "#1f6fb2")):
        y = HEIGHT * (1 - (values[rows] - low) / max(high - low, 1e-300))
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{color}"/>')
    caption = f"{html.escape(visible(name))}: {low:.4g} to {high:.4g}"
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">{"".join(lines)}'
        f"</svg><figcaption>{caption}</figcaption></figure>"
    )
