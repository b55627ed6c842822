"""What single precision cannot compute, told before it is used."""

from __future__ import annotations

import warnings

from zwang.collision.pairs import candidate_pairs
from zwang.errors import SimulationWarning
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import are_constant

RESOLVED_FRICTION = 0.01  # on pyramids: forces of their edges are differences, multiplied by 1 / mu^2


def warn_of_small_friction(mechanism: Mechanism, dtype: str) -> None:
    """Give a SimulationWarning, with the shapes, for pyramidal cones whose coefficients of friction are too
    small for single precision.
    """
    if dtype != "float32" or mechanism.options.cone != "pyramidal":
        return
    small = [
        pair
        for pair in candidate_pairs(mechanism)
        if pair.condim > 1
        and not (pair.a.shape.surface.hard or pair.b.shape.surface.hard)
        and are_constant(pair.friction[0])
        and pair.friction[0] < RESOLVED_FRICTION
    ]
    if small:
        pair, others = small[0], f" and {len(small) - 1} more" if len(small) > 1 else ""
        warnings.warn(
            f"mechanism {mechanism.name!r}: the coefficient of friction of {pair.a.name!r} with "
            f"{pair.b.name!r} is {float(pair.friction[0]):g}{others}; below {RESOLVED_FRICTION:g} pyramidal "
            'cones are inaccurate in single precision. Use Options(cone="elliptic"), surfaces with condim=1, '
            "or double precision",
            SimulationWarning,
            stacklevel=4,
        )
