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
import scipy  # its optimisation loads when it is first used

from zwang.identification.base_parameters import BaseParameters
from zwang.identification.fourier_series import FourierSeries
from zwang.identification.linear_estimation import condition_number
from zwang.identification.motor_forces import MotorForces
from zwang.identification.regressor import CompiledRegressor

Criterion = Literal["condition", "information"]


@dataclass(frozen=True)
class Descent:
    """How a minimisation smooths, and when it ends.

    p: of the criterion. sharpness: of the smooth maximum, which exceeds the maximum by at most
    log(2 samples) / sharpness. iterations: at most. tolerance: of the criterion.
    """

    p: float
    sharpness: float
    iterations: int
    tolerance: float


TRIAL = 20  # iterations after which a search shows whether it is promising
FIRST = Descent(30.0, 300.0, 80, 1e-3)
LAST = Descent(200.0, 1500.0, 300, 1e-6)
LEAST_MOTION = 1e-6  # of a motion, below which it is rest
BISECTIONS = 9  # of the factor of a motion that exceeds a limit, which is then known to 0.2 %
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
    """The minimisation over the free numbers z (nv, numbers) of the Fourier series.

    functions: the regressor of the criterion. forces: those of the motors, by `compiled_motor_forces`.
    """

    functions: CompiledRegressor
    forces: MotorForces
    base: BaseParameters
    series: FourierSeries
    limits: Limits
    criterion: Criterion

    def motion(self, z: np.ndarray) -> list[np.ndarray]:
        """q, v and a (times, nv)."""
        return [np.ascontiguousarray(x) for x in self.series.motion(z)]

    def regressors(self, z: np.ndarray) -> np.ndarray:
        """Y (times, nv, parameters) along the motion."""
        return self.functions.regressor(*self.motion(z))

    def base_regressor(self, Y: np.ndarray) -> np.ndarray:
        """W (times nv, base parameters)."""
        return Y[..., list(self.base.independent)].reshape(-1, len(self.base))

    def condition(self, z: np.ndarray) -> float:
        """The condition number of the base regressor."""
        return condition_number(self.base_regressor(self.regressors(z)))

    def scaled_condition(self, z: np.ndarray) -> float:
        """The condition number of the base regressor with columns of unit length."""
        W = self.base_regressor(self.regressors(z))
        return condition_number(W / np.linalg.norm(W, axis=0))

    def criterion_of(self, z: np.ndarray) -> float:
        """The criterion without smoothing."""
        s, _ = _singular(self.base_regressor(self.regressors(z)))
        return float(np.log(s[0] / s[-1]) if self.criterion == "condition" else -np.log(s).sum())

    def normalised(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates, velocities, accelerations and forces by their limits (4, times, nv), which keep within
        +-1; and the Jacobians (times, 3, nv, nv) of the forces by q, v and a.
        """
        q, v, a = self.motion(z)
        tau, J = self.forces(q, v, a)
        n, to = q.shape[1], self.limits
        x = np.array([(q - to.middle) / to.half, v / to.velocity, a / to.acceleration, tau / to.force])
        return x, J.reshape(-1, 3, n, n)

    def usage(self, z: np.ndarray) -> np.ndarray:
        """The largest fraction of each limit that is used (4, nv)."""
        return np.abs(self.normalised(z)[0]).max(axis=1)

    def is_within(self, z: np.ndarray) -> bool:
        """Whether no limit is exceeded."""
        return bool((self.usage(z) <= 1).all())

    def reduced(self, z: np.ndarray) -> np.ndarray:
        """z with a smaller motion about its resting posture, where it exceeds a limit; z itself where that
        posture does.
        """
        if self.is_within(z):
            return z
        within, beyond = 0.5, 1.0
        while not self.is_within(about_posture(z, within)):
            within, beyond = within / 2, within
            if within < LEAST_MOTION:
                return z
        for _ in range(BISECTIONS):
            middle = (within + beyond) / 2
            if self.is_within(about_posture(z, middle)):
                within = middle
            else:
                beyond = middle
        return about_posture(z, within)

    def cost(self, z: np.ndarray, p: float) -> tuple[float, np.ndarray]:
        """The smoothed criterion and its gradient by z (nv, numbers)."""
        q, v, a = self.motion(z)
        Y = self.functions.regressor(q, v, a)
        W = self.base_regressor(Y)
        s, V = _singular(W)
        value, d = _criterion(s, self.criterion, p)
        cotangents = np.zeros_like(Y)
        by_W = W @ ((V * (d / s)) @ V.T)
        cotangents[..., list(self.base.independent)] = by_W.reshape(*Y.shape[:2], len(s))
        return value, self.series.gradient(*self.functions.gradients(q, v, a, cotangents))

    def margins(self, z: np.ndarray, sharpness: float = FIRST.sharpness) -> tuple[np.ndarray, np.ndarray]:
        """1 - smooth maximum of the use of each limit (limits,), and its Jacobian (limits, size of z)."""
        to, n = self.limits, len(z)
        x, J = self.normalised(z)
        largest, weights = _smooth_maximum(x, sharpness)
        series = (self.series.Q, self.series.V, self.series.A)
        gradients = np.zeros((4, n, *z.shape))
        # of the motion itself: those of each joint alone
        for kind, limit in enumerate((to.half, to.velocity, to.acceleration)):
            gradients[kind, range(n), range(n)] = (weights[kind] / limit).T @ series[kind]
        # of the forces: sum over time of weight_i dtau_i/dx_j dx_j/dz_j
        by_motion = np.moveaxis((weights[3] / to.force)[:, None, :, None] * J, 0, -1)
        gradients[3] = sum(by_x @ matrix for by_x, matrix in zip(by_motion, series, strict=True))
        used = [True, True, np.isfinite(to.acceleration).all(), np.isfinite(to.force).all()]
        return 1 - largest[used].ravel(), -gradients[used].reshape(-1, z.size)

    def improved(
        self, z: np.ndarray, settings: Descent, until: float = np.inf, promising: float = np.inf
    ) -> np.ndarray:
        """The motion within the limits to which sequential quadratic programming leads from z.

        until: time of `time.perf_counter` at which the search ends. promising: it also ends where the
        criterion is greater than this after `TRIAL` iterations.
        """
        costs = _Last(lambda x: self.cost(x.reshape(z.shape), settings.p))
        margins = _Last(lambda x: self.margins(x.reshape(z.shape), settings.sharpness))
        iterations = 0

        def watch(x: np.ndarray) -> None:
            nonlocal iterations
            iterations += 1
            is_hopeless = iterations == TRIAL and self.criterion_of(x.reshape(z.shape)) > promising
            if is_hopeless or time.perf_counter() > until:
                raise StopIteration

        found = scipy.optimize.minimize(
            lambda x: costs(x)[0],
            z.ravel(),
            jac=lambda x: costs(x)[1].ravel(),
            method="SLSQP",
            constraints={"type": "ineq", "fun": lambda x: margins(x)[0], "jac": lambda x: margins(x)[1]},
            callback=watch,
            options={"maxiter": settings.iterations, "ftol": settings.tolerance},
        )
        return self.reduced(found.x.reshape(z.shape))


class _Last:
    """A function that keeps its last value."""

    def __init__(self, function: Any):
        self.function, self.x, self.value = function, np.zeros(0), None

    def __call__(self, x: np.ndarray) -> Any:
        if not np.array_equal(self.x, x):
            self.x, self.value = x.copy(), self.function(x)
        return self.value


def about_posture(z: np.ndarray, factor: float) -> np.ndarray:
    """The motion z about its resting posture, the constants of the series, times a factor."""
    return np.concatenate([z[:, :1], factor * z[:, 1:]], axis=1)


def random_motion(search: Search, rng: np.random.Generator, spread: float = 0.5) -> np.ndarray:
    """Random coefficients z (nv, numbers), as large as the limits of position and motion allow. spread: of
    the resting posture, a fraction of the half range of each joint.
    """
    joints, numbers = len(search.limits.middle), search.series.Q.shape[1]
    z = rng.normal(size=(joints, numbers))
    z[:, 0] = 0
    q, v, a = (np.abs(x).max(axis=0) for x in search.series.motion(z))
    offset = spread * rng.uniform(-1, 1, joints) * search.limits.half
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
