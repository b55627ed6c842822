"""The style of all figures, and labels in them."""

from __future__ import annotations

from typing import Any

INK = "#333333"
STYLE: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.labelcolor": INK,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "axes.formatter.useoffset": False,
    "axes.formatter.limits": (-3, 4),
}


def short(text: str, length: int = 24) -> str:
    """A text as a label: shortened, and escaped such that Matplotlib neither typesets it as mathematics nor
    omits it.
    """
    text = "".join(c if c.isprintable() else " " for c in text)
    text = text if len(text) <= length else text[: length - 1] + "…"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text  # a legend omits labels that begin with an underscore
