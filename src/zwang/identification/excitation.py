"""Exciting motions: Fourier series within the limits of the joints that tell base parameters well.

Sequential quadratic programming with exact gradients (see `excitation_search`) starts from the best of many
random motions. Its local minima differ by tens of per cent. In the best results the motion of one joint is
therefore replaced by that of another result, or by a random one, and all joints are minimised again where
some iterations show promise (a memetic algorithm: Moscato 1989); the best are finally minimised with sharper
maxima. All numbers of motions and of iterations are given, so that the result does not depend on the speed of
the machine.
Sources: Swevers et al. (1997); Gautier, Khalil, Int. J. Robotics Research 11 (1992) 362.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from zwang.api.arguments import validation
from zwang.api.arguments.validation import numeric_mechanism
from zwang.errors import DescriptionError, ShapeError, SolveError, StateError
from zwang.identification.base_parameters import base_parameters
from zwang.identification.excitation_search import (
    FIRST,
    LAST,
    LEAST_MOTION,
    Criterion,
    Limits,
    Search,
    about_posture,
    random_motion,
)
from zwang.identification.force_model import constraints_besides_friction, named
from zwang.identification.fourier_series import FourierSeries
from zwang.identification.motor_forces import compiled_motor_forces
from zwang.identification.parameters import kinds_of
from zwang.identification.regressor import compiled_functions
from zwang.mechanism.labelled_arrays import without_labels
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments

SAMPLES = 12  # of the motion for each period of the highest harmonic
DENSE, FINE = 3, 8  # times as many in the last searches, and when the limits are checked at the end
RANDOM_STARTS = 200  # random motions, from the best of which searches begin
SPREADS = (0.5, 0.95)  # of their resting postures, the second where the forces allow none of the first
POOL, POLISHED = 8, 4  # best results in which motions of joints are replaced in turn, and those of the end
CROSSING = 0.7  # probability that a joint takes its motion from another result, and not a random one
PROMISING = {
    "condition": 0.14,
    "information": 1.0,
}  # and what a trial may exceed the criterion of its result by
DEFAULT_RANGE = np.pi  # of a joint without limits [rad or m]
DEFAULT_SPEED = 2.0  # of a joint without a velocity limit [rad/s or m/s]


@dataclass(frozen=True)
class Excitation:
    """A periodic motion that excites the base parameters, by the coefficients of its Fourier series.

    condition: of the base regressor. scaled_condition: of the one with its columns scaled to unit length. The
    report of a fit has both numbers of the measured motion. random_condition: the condition of the best of
    the 200 random motions from which the search began. usage (4, nv): the largest fraction used of the limits
    of position, velocity, acceleration and force. duration [s]: of one period.
    """

    mechanism: Mechanism
    coefficients: np.ndarray
    duration: float
    harmonics: int
    condition: float
    scaled_condition: float
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
    harmonics: int = 7,
    kinds: Sequence[str] | None = None,
    criterion: Criterion = "condition",
    velocity_limits: ArrayLike | None = None,
    acceleration_limits: ArrayLike | None = None,
    effort_limits: ArrayLike | None = None,
    margin: float = 0.9,
    starts: int = 24,
    perturbations: int = 100,
    seconds: float | None = None,
    seed: int = 0,
) -> Excitation:
    """A periodic motion that tells the base parameters, by sequential quadratic programming with exact
    gradients.

    mechanism: with revolute and prismatic joints alone, and no constraints besides zw.CoulombFriction of
    joints. The limits of the joints bound the coordinates; a missing end is pi beyond the reference, or
    beyond the other end where the reference is outside. duration: of one period [s]. harmonics: of the
    Fourier series, at least 2; more of them tell more, by greater accelerations. kinds: as for `regressor`.
    criterion: "condition" minimises the condition number of the base regressor, "information" the volume of
    the confidence ellipsoid (D-optimality).
    velocity_limits, acceleration_limits, effort_limits: (nv,) [SI]; by default those of the joints, else 2
    rad/s or m/s for velocities, and none. Forces are all that the motors exert: those of inertia, gravity,
    springs and dampers, and of the dry and Coulomb friction of the mechanism, whatever the kinds. margin: the
    fraction of the limits that may be used.
    starts: the number of random motions, the best of 200, from which searches begin. perturbations: how often
    the motion of a joint is replaced in their best results; 0 for a quick motion. seed: of the random
    numbers. The result depends on these alone. seconds: a time after which the search ends early with the
    best motion so far, which then depends on the speed of the machine; by default none.

    Collisions are not considered: check the motion before a robot runs it.
    Raises DescriptionError for other joints and constraints, ShapeError and StateError for invalid settings,
    and SolveError if no random posture can be held within the limits of force.
    Sources: Swevers et al. (1997); Gautier, Khalil (1992).
    """
    began = time.perf_counter()
    m, duration = numeric_mechanism(mechanism), float(duration)
    _check_settings(m, duration, harmonics, margin)
    for name, count, least in (("starts", starts, 1), ("perturbations", perturbations, 0)):
        if count < least:
            raise StateError(f"{name} is {count}; it must be at least {least}")
    limits = _limits_of(m, float(margin), velocity_limits, acceleration_limits, effort_limits)
    names, margin = None if kinds is None else kinds_of(kinds), float(margin)
    base = base_parameters(m, kinds=names)
    count = SAMPLES * harmonics
    functions, forces = compiled_functions(m, names), compiled_motor_forces(m)
    search, dense, checked = (
        Search(functions, forces, base, FourierSeries.at(t, duration, harmonics), limits, criterion)
        for t in (
            np.arange(count) * duration / count,
            np.arange(DENSE * count) * duration / (DENSE * count),
            np.linspace(0, duration, FINE * count + 1),
        )
    )
    rng = np.random.default_rng(seed)
    random, tried = [], []
    for spread in SPREADS:
        if not random:
            tried = [search.reduced(random_motion(search, rng, spread)) for _ in range(RANDOM_STARTS)]
            random = sorted(filter(search.is_within, tried), key=search.criterion_of)
    if not random:
        raise SolveError(_without_posture(m, search, tried))
    until = float("inf") if seconds is None else began + seconds
    # small matrices: threads of BLAS would wait for each other, and the result would depend on their number
    with threadpool_limits(1, user_api="blas"):
        found = _searched(search, dense, random[:starts], perturbations, rng, until)
    reduced = map(checked.reduced, sorted(found, key=search.criterion_of))
    z = next(filter(checked.is_within, reduced), None)
    if z is None:
        raise SolveError("no motion within the limits was found; give larger limits, or another seed")
    best_random = min(map(search.condition, random))
    conditions = search.condition(z), search.scaled_condition(z)
    return Excitation(m, z, duration, harmonics, *conditions, best_random, checked.usage(z) * margin)


def _searched(
    search: Search,
    dense: Search,
    starts: list[np.ndarray],
    perturbations: int,
    rng: np.random.Generator,
    until: float,
) -> list[np.ndarray]:
    """The best motions from the starts, and from their best results with replaced motions of joints; and
    those from which they were found, which keep the limits.

    dense: the search with more samples, which follows.
    """
    found = [search.improved(z, FIRST, until) for z in starts if time.perf_counter() < until]
    results = [(search.criterion_of(z), z) for z in found if search.is_within(z)] or [(np.inf, starts[0])]
    results.sort(key=lambda result: result[0])
    for k in range(perturbations):
        if time.perf_counter() > until:
            break
        i = k % min(POOL, len(results))
        best = results[i][0]
        tried = _crossed(search, results, i, rng)
        tried = search.improved(tried, FIRST, until, best + PROMISING[search.criterion])
        value = search.criterion_of(tried)
        if value < best and search.is_within(tried):
            results[i] = value, tried
    results.sort(key=lambda result: result[0])
    within = [dense.reduced(z) for _, z in results[:POLISHED]]
    return [*(dense.improved(z, LAST, until) for z in within), *within, starts[0]]


def _crossed(
    search: Search, results: list[tuple[float, np.ndarray]], i: int, rng: np.random.Generator
) -> np.ndarray:
    """Result i with the motion of one joint of another result, or a random one."""
    z = results[i][1].copy()
    joint, other = rng.integers(len(z)), rng.integers(len(results))
    is_crossed = other != i and rng.random() < CROSSING
    z[joint] = (results[other][1] if is_crossed else random_motion(search, rng))[joint]
    return z


def _without_posture(m: Mechanism, search: Search, tried: list[np.ndarray]) -> str:
    """Why none of the motions keeps the limits, however small: what the best posture needs."""
    usage = min((search.usage(about_posture(z, LEAST_MOTION))[3] for z in tried), key=max)
    k = int(usage.argmax())
    joint, limit = m.joints[k], search.limits.force[k]
    unit = "N" if joint.kind == "prismatic" else "N m"
    return (
        f"in none of {RANDOM_STARTS} random postures are the forces within the limits that hold mechanism "
        f"{m.name!r} and overcome its friction: in the best one, joint {joint.name!r} needs "
        f"{usage[k] * limit:.3g} of {limit:.3g} {unit}; give larger effort_limits, or joint limits about a "
        "posture in which the mechanism holds its own weight"
    )


def advice_to_plan(m: Mechanism) -> str:
    """The advice to plan a motion, as the end of a sentence on wide intervals; none if `excitation` refuses
    the mechanism.
    """
    return "" if _obstacle(m) else "; zw.identify.excitation plans a motion that tells more"


def _obstacle(m: Mechanism) -> str:
    """Why no motion of the mechanism is planned, with the remedy; empty if there is no reason."""
    other = [j for j in m.joints if j.kind not in ("revolute", "prismatic")]
    if other or not m.nv:
        what = f"joint {other[0].name!r} is a {other[0].kind} joint" if other else "there is no joint"
        return f"{what}; a motion is planned for revolute and prismatic joints only"
    if constraints := constraints_besides_friction(m):
        return (
            f"mechanism {m.name!r} has constraints ({named(constraints)}), which a planned motion would "
            "violate; replace coupled joints by zw.Fixed, or leave the constraints out with "
            "mechanism.replace(constraints=())"
        )
    return ""


def _check_settings(m: Mechanism, duration: float, harmonics: int, margin: float) -> None:
    if obstacle := _obstacle(m):
        raise DescriptionError(obstacle)
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
    # about the reference, or the end that there is where that one lies beyond it
    lower = np.where(np.isfinite(ends[:, 0]), ends[:, 0], np.minimum(reference, ends[:, 1]) - DEFAULT_RANGE)
    upper = np.where(np.isfinite(ends[:, 1]), ends[:, 1], np.maximum(reference, ends[:, 0]) + DEFAULT_RANGE)

    def chosen(given: Any, name: str, field: str, default: float) -> np.ndarray:
        if given is None:
            values = [getattr(j, field, None) if field else None for j in joints]
            x = np.array([default if not value else float(value) for value in values])
        else:
            x = validation.real_values(without_labels(given, m.speed_names, name), name)
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
