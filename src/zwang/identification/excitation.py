"""Exciting motions: Fourier series within the limits of the joints that tell base parameters well.

The singular values sigma_i of the base regressor W of a motion say how well it tells the base parameters. The
motion minimises the condition number, smoothed as
    (1/p) log sum_i (sigma_i / s)^p + (1/p) log sum_i (sigma_i / s)^-p -> log(sigma_max / sigma_min),
for growing p, or -sum_i log sigma_i (D-optimality: the volume of the confidence ellipsoid). Its derivative by
W is U diag(d) V^T, with d the derivatives by sigma_i, and the derivatives of W by the motion are exact, in
reverse mode through the equations. The largest use of each limit over time enters as a smooth maximum
(Kreisselmeier, Steinhauser 1979), which is at least the maximum, so that it keeps every sample within it.
Sources: Swevers et al. (1997); Gautier, Khalil, Int. J. Robotics Research 11 (1992) 362.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from zwang.api.validation import numeric_mechanism
from zwang.errors import DescriptionError, ShapeError, SolveError, StateError
from zwang.identification.base_parameters import BaseParameters, base_parameters
from zwang.identification.fourier_series import FourierSeries
from zwang.identification.regressor import CompiledRegressor, compiled_functions
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments

Criterion = Literal["condition", "information"]

SAMPLES = 12  # of the motion for each period of the highest harmonic
FINE = 8  # times as many when the limits are checked at the end
EXPONENTS = (20.0, 60.0)  # p, one minimisation after the other
SHARPNESS = 200.0  # of the smooth maximum: it exceeds the maximum by at most log(2 samples) / 200
RANDOM_STARTS, STARTS = 100, 30  # random motions, and the best of them from which a search begins
DEFAULT_RANGE = np.pi  # of a joint without limits [rad or m]
DEFAULT_SPEED = 2.0  # of a joint without a velocity limit [rad/s or m/s]


@dataclass(frozen=True)
class Limits:
    """Middle and half range of the coordinates, largest velocities, accelerations and forces, each (nv,)."""

    middle: np.ndarray
    half: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    force: np.ndarray


@dataclass(frozen=True)
class Excitation:
    """A periodic motion that excites the base parameters, by the coefficients of its Fourier series.

    condition: of the base regressor. random_condition: of the best of the random motions from which the
    search began. usage (4, nv): the largest fraction used of the limits of position, velocity, acceleration
    and force. duration [s]: of one period.
    """

    mechanism: Mechanism
    coefficients: np.ndarray
    duration: float
    harmonics: int
    condition: float
    random_condition: float
    usage: np.ndarray

    def motion(self, times: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, a (times, nv) at these times [s]. The motion begins and ends at rest, and repeats itself."""
        series = FourierSeries.at(np.asarray(times, dtype=float), self.duration, self.harmonics)
        return series.motion(self.coefficients)


@validated_arguments()
def excitation(
    mechanism: Mechanism,
    *,
    duration: float = 10.0,
    harmonics: int = 5,
    kinds: Sequence[str] | None = None,
    criterion: Criterion = "condition",
    velocity_limits: ArrayLike | None = None,
    acceleration_limits: ArrayLike | None = None,
    effort_limits: ArrayLike | None = None,
    margin: float = 0.9,
    seconds: float = 30.0,
    seed: int = 0,
) -> Excitation:
    """A periodic motion that tells the base parameters, by sequential quadratic programming with exact
    gradients.

    mechanism: with revolute and prismatic joints alone; their limits bound the coordinates, +-pi where there
    are none. duration: of one period [s]. harmonics: of the Fourier series, at least 2. kinds: as for
    `regressor`. criterion: "condition" minimises the condition number of the base regressor, "information"
    the volume of the confidence ellipsoid (D-optimality).
    velocity_limits, acceleration_limits, effort_limits: (nv,) [SI]; by default those of the joints, else 2
    rad/s or m/s for velocities, and none. Forces are those of the mechanism's own parameters. margin: the
    fraction of the limits that may be used. seconds: time after which the search ends; its result may
    depend on the speed of the machine. seed: of the random motions.

    Collisions are not considered: check the motion before a robot runs it.
    Raises DescriptionError for other joints, ShapeError and StateError for invalid settings, and SolveError
    if no motion within the limits is found.
    Sources: Swevers et al. (1997); Gautier, Khalil (1992).
    """
    began = time.perf_counter()
    m = numeric_mechanism(mechanism)
    _check_settings(m, duration, harmonics, margin)
    limits = _limits_of(m, margin, velocity_limits, acceleration_limits, effort_limits)
    names = None if kinds is None else ((kinds,) if isinstance(kinds, str) else tuple(kinds))
    base = base_parameters(m, kinds=names)
    times = np.arange(SAMPLES * harmonics) * duration / (SAMPLES * harmonics)
    series = FourierSeries.at(times, duration, harmonics)
    search = Search(compiled_functions(m, names), base, series, limits, criterion)
    rng = np.random.default_rng(seed)
    starts = [random_motion(search, rng) for _ in range(RANDOM_STARTS)]
    ranked = sorted((search.condition(z), k) for k, z in enumerate(starts) if search.is_within(z))
    if not ranked:
        raise SolveError(
            f"none of {RANDOM_STARTS} random motions of mechanism {m.name!r} is within the limits; give "
            "larger effort_limits, or a mechanism whose limits allow it to hold its own weight"
        )
    until = began + seconds
    chosen = [starts[k] for _, k in ranked[:STARTS]]
    found = [search.improved(z, until) for z in chosen if time.perf_counter() < until] or chosen[:1]
    z = min(found, key=search.criterion_of)
    fine = FourierSeries.at(np.linspace(0, duration, FINE * len(times) + 1), duration, harmonics)
    checked = Search(search.functions, base, fine, limits, criterion)
    for _ in range(60):  # between the samples of the search a limit may be exceeded a little
        if checked.is_within(z):
            break
        z = np.concatenate([z[:, :1], 0.98 * z[:, 1:]], axis=1)
    if not checked.is_within(z):
        raise SolveError("no motion within the limits was found; give larger limits, or another seed")
    return Excitation(m, z, duration, harmonics, search.condition(z), ranked[0][0], checked.usage(z) * margin)


def _check_settings(m: Mechanism, duration: float, harmonics: int, margin: float) -> None:
    other = [j for j in m.joints if j.kind not in ("revolute", "prismatic")]
    if other or not m.nv:
        what = f"joint {other[0].name!r} is a {other[0].kind} joint" if other else "there is no joint"
        raise DescriptionError(f"{what}; a motion is planned for revolute and prismatic joints only")
    if not 0 < duration < np.inf:
        raise StateError(f"duration is {duration}; it must be a positive time in seconds")
    if not 2 <= harmonics <= 100:
        raise StateError(f"harmonics is {harmonics}; it must be from 2 to 100")
    if not 0 < margin <= 1:
        raise StateError(f"margin is {margin}; it must be more than 0 and at most 1")


def _limits_of(m: Mechanism, margin: float, velocity: Any, acceleration: Any, effort: Any) -> Limits:
    """The limits of the joints, reduced by the margin."""
    joints = [index.joint for index in m.joints]
    ends = np.array([j.limits if j.limits is not None else (-np.inf, np.inf) for j in joints], dtype=float)
    reference = np.array([float(j.reference) for j in joints])
    lower = np.where(np.isfinite(ends[:, 0]), ends[:, 0], reference - DEFAULT_RANGE)
    upper = np.where(np.isfinite(ends[:, 1]), ends[:, 1], reference + DEFAULT_RANGE)

    def chosen(given: Any, name: str, field: str, default: float) -> np.ndarray:
        if given is None:
            values = [getattr(j, field, None) if field else None for j in joints]
            x = np.array([default if not value else float(value) for value in values])
        else:
            x = np.asarray(given, dtype=float)
            if x.shape != (m.nv,):
                raise ShapeError(f"{name} must have the shape ({m.nv},); its shape is {x.shape}")
        if not (x > 0).all():
            raise StateError(f"{name} must be positive; it is {x.tolist()}")
        return margin * x

    return Limits(
        (lower + upper) / 2,
        margin * (upper - lower) / 2,
        chosen(velocity, "velocity_limits", "velocity_limit", DEFAULT_SPEED),
        chosen(acceleration, "acceleration_limits", "", np.inf),
        chosen(effort, "effort_limits", "effort_limit", np.inf),
    )


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
        s = _singular_values(self.base_regressor(self.regressors(z)))
        return float(s[0] / s[-1]) if s[-1] > 0 else float("inf")

    def criterion_of(self, z: np.ndarray) -> float:
        """The criterion without smoothing."""
        s = _singular_values(self.base_regressor(self.regressors(z)))
        if not s[-1] > 0:
            return float("inf")
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
        """The criterion and its gradient by z (nv, numbers)."""
        Y = self.regressors(z)
        W = self.base_regressor(Y)
        _, s, Vt = np.linalg.svd(np.linalg.qr(W, mode="r"))
        value, d = _criterion(s, self.criterion, p)
        cotangents = np.zeros_like(Y)
        cotangents[..., list(self.base.independent)] = (W @ (Vt.T * (d / s)) @ Vt).reshape(
            *Y.shape[:2], len(s)
        )
        return value, self.pulled_back(z, cotangents)

    def pulled_back(self, z: np.ndarray, cotangents: np.ndarray) -> np.ndarray:
        """The gradient by z of sum C_ij Y_ij, for cotangents C (times, nv, parameters)."""
        q, v, a = map(np.ascontiguousarray, self.series.motion(z))
        return self.series.gradient(*self.functions.gradients(q, v, a, cotangents))

    def margins(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """1 - smooth maximum of the use of each limit (limits,), and its Jacobian (limits, size of z)."""
        Y = self.regressors(z)
        x = self.normalised(z, Y)
        finite = np.array([np.isfinite(part).all() for part in
                           (self.limits.half, self.limits.velocity, self.limits.acceleration,
                            self.limits.force)])  # fmt: skip
        values, rows = [], []
        largest, weights = _smooth_maximum(x)
        for kind in np.flatnonzero(finite | np.array([True, True, False, False])):
            for j in range(x.shape[2]):
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

    def improved(self, z: np.ndarray, until: float) -> np.ndarray:
        """The best motion within the limits that sequential quadratic programming finds before `until`."""
        best = (self.criterion_of(z), z)
        known: list[Any] = [None, None]  # the last numbers, and their margins

        def margins(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            if known[0] is None or not np.array_equal(known[0], x):
                known[:] = x.copy(), self.margins(x.reshape(z.shape))
            return known[1]

        def watch(x: np.ndarray) -> None:
            nonlocal best
            now = x.reshape(z.shape)
            value = self.criterion_of(now)
            if value < best[0] and self.is_within(now):
                best = (value, now.copy())
            if time.perf_counter() > until:
                raise StopIteration

        for p in EXPONENTS if self.criterion == "condition" else (2.0,):
            if time.perf_counter() > until:
                break

            def cost(x: np.ndarray, p: float = p) -> tuple[float, np.ndarray]:
                value, gradient = self.cost(x.reshape(z.shape), p)
                return value, gradient.ravel()

            minimize(
                cost,
                best[1].ravel(),
                jac=True,
                method="SLSQP",
                constraints={
                    "type": "ineq",
                    "fun": lambda x: margins(x)[0],
                    "jac": lambda x: margins(x)[1],
                },
                callback=watch,
                options={"maxiter": 400, "ftol": 1e-4},
            )
        return best[1]


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


def _singular_values(W: np.ndarray) -> np.ndarray:
    return np.linalg.svd(np.linalg.qr(W, mode="r"), compute_uv=False)


def _criterion(s: np.ndarray, criterion: Criterion, p: float) -> tuple[float, np.ndarray]:
    """The criterion of the singular values, and its derivatives by them."""
    s = np.maximum(s, 1e-12 * s[0])
    if criterion == "information":
        return float(-np.log(s).sum()), -1 / s
    large, small = (s / s[0]) ** p, (s / s[-1]) ** -p
    value = np.log(s[0] / s[-1]) + (np.log(large.sum()) + np.log(small.sum())) / p
    return float(value), (large / large.sum() - small / small.sum()) / s


def _smooth_maximum(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The Kreisselmeier-Steinhauser maximum (kinds, nv) of |x| (kinds, times, nv) over time, and its
    derivatives by x.
    """
    both = np.concatenate([x, -x], axis=1)
    largest = both.max(axis=1)
    powers = np.exp(SHARPNESS * (both - largest[:, None]))
    total = powers.sum(axis=1)
    weight = powers / total[:, None]
    half = x.shape[1]
    return largest + np.log(total) / SHARPNESS, weight[:, :half] - weight[:, half:]
