"""The search for an exciting motion: the criterion and the limits of a Fourier series, with exact gradients.

With the Gram matrix W^T W = V diag(sigma^2) V^T of the base regressor W, the derivative of a function of the
singular values sigma by W is W V diag(d / sigma) V^T, with d the derivatives by sigma_i. The condition number
is smoothed as
    (1/p) log sum_i (sigma_i / s)^p + (1/p) log sum_i (sigma_i / s)^-p -> log(sigma_max / sigma_min),
for growing p, and -sum_i log sigma_i is D-optimality (the volume of the confidence ellipsoid). The
derivatives of W by the motion are exact, in reverse mode through the equations. The largest use of each limit
over time enters as a smooth maximum (Kreisselmeier, Steinhauser 1979), which is at least the maximum, so that
it keeps every sample within it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize

from zwang.identification.base_parameters import BaseParameters
from zwang.identification.fourier_series import FourierSeries
from zwang.identification.regressor import CompiledRegressor

Criterion = Literal["condition", "information"]

STAGES = ((30.0, 300.0, 80, 1e-3), (200.0, 1500.0, 300, 1e-6))
"""p, sharpness of the smooth maximum (which exceeds the maximum by at most log(2 samples) / sharpness), the
most iterations, and the tolerance: of the search from each start, and of the last one from the best results.
"""
LEAST_RATIO = 1e-14  # of the eigenvalues of the Gram matrix, below which rounding decides


@dataclass(frozen=True)
class Limits:
    """Middle and half range of the coordinates, largest velocities, accelerations and forces, each (nv,)."""

    middle: np.ndarray
    half: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    force: np.ndarray


@dataclass(frozen=True)
class Search:
    """The minimisation over the free numbers z (nv, numbers) of the Fourier series."""

    functions: CompiledRegressor
    base: BaseParameters
    series: FourierSeries
    limits: Limits
    criterion: Criterion

    @property
    def pi(self) -> np.ndarray:
        """The parameters of the mechanism, for its forces."""
        return np.array([float(p.value) for p in self.base.parameters])

    def regressors(self, z: np.ndarray) -> np.ndarray:
        """Y (times, nv, parameters) along the motion."""
        return self.functions.regressor(*map(np.ascontiguousarray, self.series.motion(z)))

    def base_regressor(self, Y: np.ndarray) -> np.ndarray:
        """W (times nv, base parameters)."""
        return Y[..., list(self.base.independent)].reshape(-1, len(self.base))

    def condition(self, z: np.ndarray) -> float:
        """The condition number of the base regressor."""
        s = np.linalg.svd(self.base_regressor(self.regressors(z)), compute_uv=False)
        return float(s[0] / s[-1]) if s[-1] > 0 else float("inf")

    def criterion_of(self, z: np.ndarray) -> float:
        """The criterion without smoothing."""
        return self._value(_singular(self.base_regressor(self.regressors(z)))[0])

    def _value(self, s: np.ndarray) -> float:
        return float(np.log(s[0] / s[-1]) if self.criterion == "condition" else -np.log(s).sum())

    def normalised(self, z: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Coordinates, velocities, accelerations and forces by their limits, (4, times, nv): within +-1."""
        q, v, a = self.series.motion(z)
        to = self.limits
        parts = (q - to.middle) / to.half, v / to.velocity, a / to.acceleration, Y @ self.pi / to.force
        return np.array(parts)

    def usage(self, z: np.ndarray) -> np.ndarray:
        """The largest fraction of each limit that is used (4, nv)."""
        return np.abs(self.normalised(z, self.regressors(z))).max(axis=1)

    def is_within(self, z: np.ndarray) -> bool:
        """Whether no limit is exceeded."""
        return bool((self.usage(z) <= 1).all())

    def cost(self, z: np.ndarray, p: float) -> tuple[float, np.ndarray]:
        """The smoothed criterion and its gradient by z (nv, numbers)."""
        value, _, gradient = self._costs(z, p)
        return value, gradient

    def _costs(self, z: np.ndarray, p: float) -> tuple[float, float, np.ndarray]:
        """The smoothed criterion, the criterion itself, and the gradient of the first."""
        Y = self.regressors(z)
        W = self.base_regressor(Y)
        s, V = _singular(W)
        value, d = _criterion(s, self.criterion, p)
        cotangents = np.zeros_like(Y)
        by_W = W @ ((V * (d / s)) @ V.T)
        cotangents[..., list(self.base.independent)] = by_W.reshape(*Y.shape[:2], len(s))
        return value, self._value(s), self.pulled_back(z, cotangents)

    def pulled_back(self, z: np.ndarray, cotangents: np.ndarray) -> np.ndarray:
        """The gradient by z of sum C_ij Y_ij, for cotangents C (times, nv, parameters)."""
        q, v, a = map(np.ascontiguousarray, self.series.motion(z))
        return self.series.gradient(*self.functions.gradients(q, v, a, cotangents))

    def margins(self, z: np.ndarray, sharpness: float = STAGES[0][1]) -> tuple[np.ndarray, np.ndarray]:
        """1 - smooth maximum of the use of each limit (limits,), and its Jacobian (limits, size of z)."""
        Y = self.regressors(z)
        finite = np.array([np.isfinite(part).all() for part in
                           (self.limits.half, self.limits.velocity, self.limits.acceleration,
                            self.limits.force)])  # fmt: skip
        values, rows = [], []
        largest, weights = _smooth_maximum(self.normalised(z, Y), sharpness)
        for kind in np.flatnonzero(finite | np.array([True, True, False, False])):
            for j in range(largest.shape[1]):
                values.append(1 - largest[kind, j])
                rows.append(-self._limit_gradient(z, Y.shape, int(kind), j, weights[kind, :, j]).ravel())
        return np.array(values), np.array(rows)

    def _limit_gradient(self, z: np.ndarray, shape: tuple, kind: int, j: int, weight: np.ndarray
                        ) -> np.ndarray:  # fmt: skip
        """The gradient by z of sum_t weight_t x_t, with x the use of one limit of joint j."""
        if kind < 3:
            matrix = (self.series.Q, self.series.V, self.series.A)[kind]
            size = (self.limits.half, self.limits.velocity, self.limits.acceleration)[kind][j]
            gradient = np.zeros(z.shape)
            gradient[j] = weight @ matrix / size
            return gradient
        cotangents = np.zeros(shape)
        cotangents[:, j, :] = np.outer(weight / self.limits.force[j], self.pi)
        return self.pulled_back(z, cotangents)

    def improved(self, z: np.ndarray, stage: int, until: float = float("inf")) -> np.ndarray:
        """The best motion within the limits that sequential quadratic programming finds from z.

        stage: of `STAGES`. until: time of `time.perf_counter` at which the search ends.
        """
        p, sharpness, iterations, tolerance = STAGES[stage]
        best = (self.criterion_of(z), z)
        costs = _Last(lambda x: self._costs(x.reshape(z.shape), p))
        margins = _Last(lambda x: self.margins(x.reshape(z.shape), sharpness))

        def watch(x: np.ndarray) -> None:
            nonlocal best
            value = costs(x)[1]
            if value < best[0] and self.is_within(x.reshape(z.shape)):
                best = (value, x.reshape(z.shape).copy())
            if time.perf_counter() > until:
                raise StopIteration

        minimize(
            lambda x: costs(x)[0],
            z.ravel(),
            jac=lambda x: costs(x)[2].ravel(),
            method="SLSQP",
            constraints={"type": "ineq", "fun": lambda x: margins(x)[0], "jac": lambda x: margins(x)[1]},
            callback=watch,
            options={"maxiter": iterations, "ftol": tolerance},
        )
        return best[1]


class _Last:
    """A function that keeps its last value."""

    def __init__(self, function: Any):
        self.function, self.x, self.value = function, np.zeros(0), None

    def __call__(self, x: np.ndarray) -> Any:
        if not np.array_equal(self.x, x):
            self.x, self.value = x.copy(), self.function(x)
        return self.value


def random_motion(search: Search, rng: np.random.Generator) -> np.ndarray:
    """Random coefficients z (nv, numbers), as large as the limits of position and motion allow."""
    joints, numbers = len(search.limits.middle), search.series.Q.shape[1]
    z = rng.normal(size=(joints, numbers))
    z[:, 0] = 0
    q, v, a = (np.abs(x).max(axis=0) for x in search.series.motion(z))
    offset = 0.5 * rng.uniform(-1, 1, joints) * search.limits.half
    room = search.limits.half - np.abs(offset)
    scale = np.minimum.reduce(
        [room / q, search.limits.velocity / v, search.limits.acceleration / a, np.full(joints, np.inf)]
    )
    z *= 0.99 * scale[:, None]
    z[:, 0] = search.limits.middle + offset
    return z


def _singular(W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The singular values (n,), largest first, and right singular vectors V (n, n) of W, by W^T W."""
    values, V = np.linalg.eigh(W.T @ W)
    return np.sqrt(np.maximum(values[::-1], LEAST_RATIO * values[-1])), V[:, ::-1]


def _criterion(s: np.ndarray, criterion: Criterion, p: float) -> tuple[float, np.ndarray]:
    """The criterion of the singular values, and its derivatives by them."""
    if criterion == "information":
        return float(-np.log(s).sum()), -1 / s
    large, small = (s / s[0]) ** p, (s / s[-1]) ** -p
    value = np.log(s[0] / s[-1]) + (np.log(large.sum()) + np.log(small.sum())) / p
    return float(value), (large / large.sum() - small / small.sum()) / s


def _smooth_maximum(x: np.ndarray, sharpness: float) -> tuple[np.ndarray, np.ndarray]:
    """The Kreisselmeier-Steinhauser maximum (kinds, nv) of |x| (kinds, times, nv) over time, and its
    derivatives by x.
    """
    both = np.concatenate([x, -x], axis=1)
    largest = both.max(axis=1)
    powers = np.exp(sharpness * (both - largest[:, None]))
    total = powers.sum(axis=1)
    weight = powers / total[:, None]
    half = x.shape[1]
    return largest + np.log(total) / sharpness, weight[:, :half] - weight[:, half:]
