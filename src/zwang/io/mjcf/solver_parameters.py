"""Numbers of softness as MuJoCo's engine takes them: what a file has outside its ranges is brought into them, and told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zwang.io.mjcf.compiled_model import MjcfModel
from zwang.mechanism.joints import Softness

DEFAULT = (0.02, 1.0)
SOFT = (
    ("geom", "geom_solref", "geom_solimp"),
    ("joint", "jnt_solref", "jnt_solimp"),
    ("equality", "eq_solref", "eq_solimp"),
    ("pair", "pair_solref", "pair_solimp"),
)


def solref_of(values: Any) -> tuple[float, float]:
    """solref; a mixture of its two formats is the default, as in MuJoCo's engine."""
    first, second = (float(x) for x in values)
    return DEFAULT if (first > 0) != (second > 0) else (first, second)


def solimp_of(values: Any) -> tuple[float, ...]:
    """solimp within MuJoCo's ranges: impedances and midpoint from 0 to 1, width >= 0, power >= 1. What is no number stays so."""
    d0, dw, width, midpoint, power = (float(x) for x in values)
    d0, dw, midpoint = (min(max(x, 0.0), 1.0) for x in (d0, dw, midpoint))
    return d0, dw, max(width, 0.0), midpoint, max(power, 1.0)


def softness_of(solref: Any, solimp: Any, margin: Any = 0) -> Softness:
    """MuJoCo's numbers of softness."""
    return Softness(solref_of(solref), solimp_of(solimp), float(margin) or 0)


def note_clamped_parameters(source: MjcfModel) -> None:
    """Tells of every number of softness in a file that MuJoCo takes for another one."""
    for message, where in _changed(source):
        source.note("repaired", message, where)


def _changed(source: MjcfModel) -> Iterator[tuple[str, str]]:
    m = source.model
    for kind, solref, solimp in SOFT:
        for name, convert in ((solref, solref_of), (solimp, solimp_of)):
            for k, row in enumerate(getattr(m, name)):
                given = tuple(row.tolist())
                taken = convert(given)
                if given != taken:
                    what = f"{name.split('_')[1]} of a {kind} is {_shown(given)}"
                    yield f"{what}; it is taken as {_shown(taken)}, as MuJoCo does", source.location(kind, k)


def _shown(values: Any) -> str:
    return "(" + ", ".join(f"{float(x):g}" for x in values) + ")"
