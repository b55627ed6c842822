"""The combinations of parameters that a record tells, with their intervals, from the residuals' derivatives.

Inertial parameters and the scalars of a joint enter the equations of motion only in the base parameters
beta = B p of inverse dynamics, with hard constraints of that along their independent motions, so that the
derivatives by p are J = J_b B, with the columns J_b of the independent parameters. With the standard
deviation sigma_j and the autocorrelation time T_j of the residuals of the coordinate of a trial j,
    H = sum_j J_j^T J_j,    C = H^-1 (sum_j sigma_j^2 T_j J_j^T J_j) H^-1
is the covariance of beta; for Huber's loss sigma_j^2 is E psi^2 / (E psi')^2 (Huber 1981, Section 7.6), and
J_j has no weights of the loss. A direction in which H is singular is not told by the record, and a
combination with a part in such a direction has an infinite interval. Errors e of the simulated coordinates by
the size of the steps change beta by H^-1 J^T e, without what changes of the starts explain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy  # its statistics load when they are first used

from zwang.api.compilation.closed_loops import closed_loops
from zwang.constraint.hard import depends_on_time, hard_constraints, is_hard_constraint
from zwang.identification.base_parameters import (
    BaseParameters,
    random_states,
    rows_of_work,
    selected_columns,
    with_independent,
)
from zwang.identification.linear_estimation import (
    HUBER,
    Loss,
    SampleErrors,
    autocorrelation_times,
    corrected_times,
    error_groups,
)
from zwang.identification.natural_units import natural_units
from zwang.identification.parameters import INERTIAL_KINDS, Parameter
from zwang.identification.regressor import compiled_functions
from zwang.identification.simulation.output_error import Linearisation
from zwang.identification.simulation.unknowns import SYMBOL, Unknowns
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import is_zero

TOLERANCE = 1e-7  # relative size of the independent part of a column that counts
SINGULAR = 1e-7  # relative singular value of the scaled derivatives below which a direction is not told
PART = 1e-3  # of a combination in a direction that is not told, beyond which its interval is infinite


@dataclass(frozen=True)
class KnownCombinations:
    """Combinations beta = B p (m,) of the fitted parameters, with covariance (m, m) and intervals (m, 2).

    combinations, units: in the names of the parameters. condition: of the scaled derivatives. level: of the
    intervals. discretisation (m,): about how much the size of the steps changes beta.
    """

    base: BaseParameters
    beta: np.ndarray
    covariance: np.ndarray
    interval: np.ndarray
    condition: float
    level: float
    discretisation: np.ndarray

    @property
    def combinations(self) -> tuple[str, ...]:
        """Such as "I_arm_zz + 0.36 m_hand"."""
        return self.base.combinations

    @property
    def units(self) -> tuple[str, ...]:
        """The units of the combinations."""
        return tuple(self.base.parameters[k].unit for k in self.base.independent)


def known_combinations(
    unknowns: Unknowns, at: Linearisation, p: np.ndarray, level: float, loss: Loss, errors: np.ndarray,
    lengths: tuple[int, ...],
) -> KnownCombinations:  # fmt: skip
    """The combinations with their intervals at the fitted p. at: without the weights of the loss. errors
    (W, rows): of the residuals by the size of the steps. lengths: the samples of each trial.
    """
    base = _base(unknowns)
    _, J, _ = at.eliminated(at.by_parameters[..., list(base.independent)])
    nv, m = unknowns.model.nv, len(base)
    r, J = at.residuals.reshape(-1, nv), J.reshape(-1, nv, m)
    fitted = m + at.by_starts.shape[0] * at.by_starts.shape[-1]
    found = _errors(r, fitted, loss, lengths)
    scale = np.linalg.norm(J.reshape(-1, m), axis=0)
    scale = np.where(scale > 0, scale, 1)
    A = J / scale
    _, s, Vt = np.linalg.svd(np.linalg.qr(A.reshape(-1, m), mode="r"))
    told = s > SINGULAR * s[0]
    inverse = (Vt[told].T / s[told] ** 2) @ Vt[told]
    G = np.einsum("tj,tji,tjk->ik", found.variance[found.group], A, A, optimize=True)
    covariance = inverse @ G @ inverse / np.outer(scale, scale)
    beta = base.matrix @ p
    freedom = max(1.0, (np.count_nonzero(r) - fitted) / float(found.by_joint[1].max()))
    half = scipy.stats.t.ppf((1 + level) / 2, freedom) * np.sqrt(np.diag(covariance))
    hidden = np.sqrt((Vt[~told] ** 2).sum(0)) > PART
    half = np.where(hidden, np.inf, half)
    moved = np.abs(inverse @ (A.reshape(-1, m).T @ errors.ravel())) / scale
    condition = float(s[0] / s[-1]) if s[-1] > 0 else float("inf")
    return KnownCombinations(
        base, beta, covariance, np.stack([beta - half, beta + half], axis=1), condition, level, moved
    )


def _errors(r: np.ndarray, fitted: int, loss: Loss, lengths: tuple[int, ...]) -> SampleErrors:
    """The errors of weighted residuals r (N, nv), 0 where they do not count, by trial and coordinate. fitted:
    the number of parameters and starts, which count in proportion to the samples.
    """
    bound = HUBER if loss == "huber" else np.inf
    psi, counted = np.clip(r, -bound, bound), np.abs(r) > 0
    linear, centred = counted & (np.abs(r) <= bound), psi - psi.mean(axis=0)
    part = fitted / max(1, int(counted.sum()))
    group, found = np.zeros(len(r), dtype=int), []
    for k, (rows, own) in enumerate(error_groups(len(r), lengths)):
        count = int(counted[rows].sum())
        share = np.maximum(linear[rows].sum(0), 1) / np.maximum(counted[rows].sum(0), 1)
        sigma2 = (psi[rows] ** 2).sum(0) * r.shape[1] / max(1, count * (1 - part)) / share**2
        T, ratio = corrected_times(autocorrelation_times(centred[rows], own), part)
        found.append((np.sqrt(sigma2), T, sigma2 * ratio * T))
        group[rows] = k
    return SampleErrors(group, *map(np.array, zip(*found, strict=True)))


def _base(unknowns: Unknowns) -> BaseParameters:
    """The base parameters of the unknowns; a symbol of the mechanism counts as independent."""
    regular = [p for p in unknowns.parameters if p.kind != SYMBOL]
    own = [p for p in unknowns.parameters if p.kind == SYMBOL]
    if not regular:
        return _all_independent(own)
    kinds = tuple(dict.fromkeys("inertia" if p.kind in INERTIAL_KINDS else p.kind for p in regular))
    functions = compiled_functions(unknowns.model.replace(constraints=()), kinds)
    names = [p.name for p in functions.chosen]
    columns = [names.index(p.name) for p in regular]

    def regressor(*states: np.ndarray) -> np.ndarray:
        return functions.regressor(*map(np.ascontiguousarray, states))[..., columns]

    rows = _rows(unknowns.model, regressor, 20 + 6 * len(columns))
    found = selected_columns(rows, tuple(regular), natural_units(unknowns.model), TOLERANCE)
    return with_independent(found, own)


def _rows(m: Mechanism, regressor: Callable[..., np.ndarray], count: int) -> np.ndarray:
    """Rows (rows, parameters) of a regressor of (q, v, a) at random states, about `count`. Within hard
    constraints these are the works of the independent motions: a combination that changes the forces of the
    constraints alone does not change the motion, but for the regularisation of the rows of dry friction,
    which is no property of the mechanism.
    """
    units, rng = natural_units(m), np.random.default_rng(0)
    if _are_ideal(m):
        *states, N = closed_loops(m).random_motions(count, rng, units.rate, units.displacements)
        Y = N.swapaxes(-1, -2) @ regressor(*states)
        rows = Y.reshape(-1, Y.shape[-1])
        if 2 * len(rows) > count and rows.any():
            return rows
    Y = regressor(*random_states(m, 20 + count // max(m.nv, 1), rng))
    return rows_of_work(Y, units.displacements)


def _are_ideal(m: Mechanism) -> bool:
    """Whether a mechanism has constraints, and all of them are hard and ideal and independent of time."""
    acting = [c for c in m.constraints if not is_zero(getattr(c, "active", 1))]
    return bool(hard_constraints(m)) and all(is_hard_constraint(c) and not depends_on_time(c) for c in acting)


def _all_independent(own: list[Parameter]) -> BaseParameters:
    """Base parameters of which each is a symbol."""
    n = len(own)
    return BaseParameters(tuple(own), tuple(range(n)), (), (), np.zeros((n, 0)), np.ones(n), np.ones(n))
