"""Solver parameters (solref, solimp), clipped to their ranges as in MuJoCo, with notes on the changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zwang.io.mjcf.read.compiled_model import MjcfModel
from zwang.mechanism.joints import Softness

DEFAULT_SOLREF = (0.02, 1.0)
SOLVER_PARAMETERS = (
    ("geom", "geom_solref", "geom_solimp"),
    ("joint", "jnt_solref", "jnt_solimp"),
    ("equality", "eq_solref", "eq_solimp"),
    ("pair", "pair_solref", "pair_solimp"),
)


def solref_of(values: Any) -> tuple[float, float]:
    """`values` as solref; a mixture of its two formats is replaced by the default, as in MuJoCo."""
    first, second = (float(x) for x in values)
    return DEFAULT_SOLREF if (first > 0) != (second > 0) else (first, second)


def solimp_of(values: Any) -> tuple[float, ...]:
    """`values` as solimp, clipped to its ranges as in MuJoCo, see `Softness`; NaN is preserved."""
    d0, dw, width, midpoint, power = (float(x) for x in values)
    d0, dw, midpoint = (min(max(x, 0.0), 1.0) for x in (d0, dw, midpoint))
    return d0, dw, max(width, 0.0), midpoint, max(power, 1.0)


def softness_of(solref: Any, solimp: Any, margin: Any = 0) -> Softness:
    """The softness with these solver parameters, clipped to their ranges."""
    return Softness(solref_of(solref), solimp_of(solimp), float(margin) or 0)


def note_clamped_parameters(source: MjcfModel) -> None:
    """Add a note for all solver parameters that MuJoCo replaces by other values."""
    for message, where in _changed(source):
        source.note("repaired", message, where)


def _changed(source: MjcfModel) -> Iterator[tuple[str, str]]:
    m = source.model
    for kind, solref, solimp in SOLVER_PARAMETERS:
        for name, convert in ((solref, solref_of), (solimp, solimp_of)):
            for k, row in enumerate(getattr(m, name)):
                given = tuple(row.tolist())
                used = convert(given)
                if given != used:
                    what = f"{name.split('_')[1]} of a {kind} is {_shown(given)}"
                    yield f"{what}; {_shown(used)} is used instead, as in MuJoCo", source.location(kind, k)


def _shown(values: Any) -> str:
    return "(" + ", ".join(f"{float(x):g}" for x in values) + ")"
