"""Solver parameters (solref, solimp), clipped to their ranges as in MuJoCo, with notes on the changes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from zwang.io.mjcf.read.compiled_model import MjcfModel
from zwang.mechanism.joints import Softness
from zwang.mechanism.numbers import clipped_solimp

DEFAULT_SOLREF = (0.02, 1.0)
SOLVER_PARAMETERS = (
    ("geom", "geom_solref", "geom_solimp"),
    ("joint", "jnt_solref", "jnt_solimp"),
    ("equality", "eq_solref", "eq_solimp"),
    ("pair", "pair_solref", "pair_solimp"),
)
MIXED = "it is mixed with that of the other geom as it is, and the mixture is clipped, as in MuJoCo"


def solref_of(values: Any) -> tuple[float, float]:
    """`values` as solref; a mixture of its two formats is replaced by the default, as in MuJoCo."""
    first, second = (float(x) for x in values)
    return DEFAULT_SOLREF if (first > 0) != (second > 0) else (first, second)


def softness_of(solref: Any, solimp: Any, margin: Any = 0) -> Softness:
    """The softness with these solver parameters, clipped to their ranges."""
    return _softness(tuple(map(float, solref)), tuple(map(float, solimp)), float(margin) or 0)


@lru_cache  # most parts of a model have the default parameters
def _softness(solref: tuple[float, ...], solimp: tuple[float, ...], margin: float) -> Softness:
    return Softness(solref_of(solref), clipped_solimp(solimp), margin)


def note_clamped_parameters(source: MjcfModel) -> None:
    """Add a note for all solver parameters that MuJoCo replaces by other values."""
    for message, where in _changed(source):
        source.note("repaired", message, where)


def _changed(source: MjcfModel) -> Iterator[tuple[str, str]]:
    m = source.model
    for kind, solref, solimp in SOLVER_PARAMETERS:
        for name, convert in ((solref, solref_of), (solimp, clipped_solimp)):
            for k, row in enumerate(getattr(m, name)):
                given = tuple(row.tolist())
                used = convert(given)
                if given != used:
                    what = f"{name.split('_')[1]} of a {kind} is {_shown(given)}"
                    effect = f"{_shown(used)} is used instead, as in MuJoCo"
                    effect = MIXED if name == "geom_solimp" else effect
                    yield f"{what}; {effect}", source.location(kind, k)


def _shown(values: Any) -> str:
    return "(" + ", ".join(f"{float(x):g}" for x in values) + ")"
