"""The loads of joints with Coulomb friction as functions of the parameters, with their derivatives.

The reaction of a bearing is linear in the parameters, r = R(q, v, a) pi: the rows of R are those of the
regressor of the mechanism in which the joint is released (see `zwang.constraint.bearings`). The load L of a
law is a sum of norms of parts of r, so that mu L(pi) is not linear in the parameters.

Inverse dynamics tells beta = B pi alone, and a load depends on more, such as the masses of bodies. What beta
does not tell is taken from the model and from priors: pi(beta) = pi_0 + G (beta - B pi_0) is the nearest to
pi_0, in units of its uncertainties, of all parameters with these base parameters. The uncertainty of a
parameter of the model is its size. With a prior, pi_0 is the mean of both, weighed by their precisions, so
that a weighed mass keeps its value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from zwang.api.compilation.cache_key import IdentityKey
from zwang.api.compilation.compiled import compile_function
from zwang.constraint.bearings import ReleasedMechanism, released_mechanism
from zwang.identification.base_parameters import BaseParameters
from zwang.identification.fit_settings import Priors
from zwang.identification.parameters import parameters_of
from zwang.identification.regressor import symbolic_regressor
from zwang.mechanism.constraints import CoulombFriction
from zwang.mechanism.mechanism import Mechanism

LEAST_SCALE = 1e-2  # of a parameter of the model, for relative terms
LEAST_FORCE = 1e-12  # [N], below which the derivative of a norm is taken to be 0


@dataclass(frozen=True)
class BearingRegressor:
    """The compiled rows R of the reactions of all laws of Coulomb friction in joints."""

    released: ReleasedMechanism
    columns: int
    _rows: Any

    @property
    def laws(self) -> tuple[CoulombFriction, ...]:
        """The laws, in the order of the mechanism's constraints."""
        return self.released.laws

    def reactions(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[np.ndarray]:
        """R (N, 4 or 5, parameters) of each law: two forces and two moments normal to the axis, and for a
        collar the force along it.
        """
        sizes = [len(self.released.reactions_of(law)) for law in self.laws]
        flat = self._rows(q, v, a).reshape(len(q), sum(sizes), self.columns)
        return np.split(flat, np.cumsum(sizes)[:-1], axis=1)


def bearing_regressor(m: Mechanism, kinds: tuple[str, ...] | None) -> BearingRegressor | None:
    """The compiled reactions of a mechanism without symbols; None if no joint has Coulomb friction.

    Their columns are the parameters of `parameters_of(m, kinds)`.
    """
    if not any(isinstance(c, CoulombFriction) and c.joint is not None for c in m.constraints):
        return None
    return _bearing_regressor(IdentityKey(m), kinds)


@lru_cache(maxsize=16)
def _bearing_regressor(same: IdentityKey, kinds: tuple[str, ...] | None) -> BearingRegressor:
    m = same.mechanism
    released = released_mechanism(m)
    assert released is not None
    names = [p.name for p in parameters_of(m, kinds)]
    chosen = parameters_of(released.mechanism, kinds)
    columns = [[p.name for p in chosen].index(name) for name in names]
    rows = [k for law in released.laws for k in released.reactions_of(law)]

    def reactions(q: Any, v: Any, a: Any) -> np.ndarray:
        states = released.configuration(q), released.velocities(v), released.velocities(a)
        return symbolic_regressor(released.mechanism, chosen, *states)[np.ix_(rows, columns)]

    return BearingRegressor(
        released, len(names), compile_function(reactions, {"q": m.nq, "v": m.nv, "a": m.nv})
    )


def nearest_parameters(base: BaseParameters, model: np.ndarray, priors: Priors
                       ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """G (parameters, base) and the rest (parameters,) of the parameters G beta + rest that are nearest to
    those of the model (parameters,) and to the priors of single ones by name.
    """
    center, scale = model.copy(), np.maximum(np.abs(model), LEAST_SCALE)
    for k, p in enumerate(base.parameters):
        if p.name in priors:
            value, deviation = priors[p.name]
            share = scale[k] ** 2 / (scale[k] ** 2 + deviation**2)
            center[k] += share * (value - center[k])
            scale[k] = np.sqrt(share) * deviation
    G = scale[:, None] * np.linalg.pinv(base.matrix * scale)
    return G, center - G @ (base.matrix @ center)


def load_of(law: CoulombFriction, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The friction torque [N m] or force [N] of a law for mu = 1 (N,), and its derivatives (N, 4 or 5) by the
    reactions r (N, 4 or 5): the formula of `BearingState.load`.
    """
    F, by = r[:, :2], np.zeros_like(r)
    if law.bearing_distance is None:
        radial, by[:, :2] = _norm(F)
    else:
        arm = 2 / float(law.bearing_distance)
        D = arm * np.stack([r[:, 3], -r[:, 2]], axis=1)
        (plus, by_plus), (minus, by_minus) = _norm(F + D), _norm(F - D)
        radial = (plus + minus) / 2
        by[:, :2] = (by_plus + by_minus) / 2
        by_D = arm * (by_plus - by_minus) / 2
        by[:, 3], by[:, 2] = by_D[:, 0], -by_D[:, 1]
    if law.radius is None:
        return radial, by
    radius, collar = float(law.radius), float(law.collar_radius)
    by *= radius
    if r.shape[1] == 4:
        return radius * radial, by
    by[:, 4] = collar * np.sign(r[:, 4])
    return radius * radial + collar * np.abs(r[:, 4]), by


def _norm(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|x| (N,) of x (N, 2), and its derivatives (N, 2)."""
    size = np.hypot(x[:, 0], x[:, 1])
    return size, x / np.maximum(size, LEAST_FORCE)[:, None]
