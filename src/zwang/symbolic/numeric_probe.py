"""Numeric probes: generic numeric instances of symbolic mechanisms, on which ranks and pivots are judged."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from zwang.constraint.hard import hard_constraints, velocity_level_rows_at
from zwang.constraint.row_sizes import LENGTHS, row_changes
from zwang.errors import ZwangWarning
from zwang.kinematics.configuration import integrate_configuration, normalized_configuration
from zwang.mechanism.lengths import displacement_sizes, translations
from zwang.mechanism.mechanism import Mechanism
from zwang.symbolic.closed_rows import closed_rows
from zwang.symbolic.expression_forms import mechanism_in_scalars
from zwang.symbolic.sympy_backend import substitute_in
from zwang.symbolic.sympy_types import free_symbols_in

RANK = 1e-9
REGULAR = 1e-4  # singular values of the rows at home, below which it is almost singular
TIE = 1e-6  # relative difference of pivots that are equal to rounding, of which the first is taken
TIME = 0.37  # [s] at which constraints that depend on time are evaluated
DISPLACEMENTS = (1.0, 0.6, -1.3)  # factors of the displacement from the home configuration
ROUNDED = 1e-2  # of the change of a formula by its coordinates: the closure tolerance is above rounding
ASSEMBLY_ITERATIONS, LARGEST_STEP, CLOSURE_TOLERANCE = 200, 0.3, 1e-13
REFINEMENTS, LOST_DIGITS = 6, 4  # of a configuration in many digits, and digits that rounding may take
CONFIGURATIONS = 3  # in general position, at which rows are compared
ATTEMPTS = 3  # to assemble the constraints from a random configuration, for each one that is wanted
STARTS = 16  # from which other branches are assembled
FAR = 3.0  # their displacements, relative to large ones
FAR_ITERATIONS = 60  # of which most are steps of LARGEST_STEP; others are on their way to no branch
ROUNDED_HOME = 0.3  # distance, relative to large ones, from a home that is given to its assembly
LOCKED = 1e-6  # largest component of a velocity that the constraints allow no motion of

_VALUES = [0.93, 1.07, 0.98, 1.03, 0.91, 1.01, 1.09, 0.96]


def value_near(expression: sp.Expr) -> float:
    """A number for an expression, with values near 1 for its symbols, which give admissible inertias."""
    values = {s: _VALUES[sum(map(ord, s.name)) % 8] for s in free_symbols_in(expression)}
    return float(substitute_in(expression, values))


class NumericProbe(NamedTuple):
    """A mechanism with numbers for its symbols, and a generic configuration (nq,).

    degrees_of_freedom: those at q first, then those of other branches (assembly modes) that were found; empty
    if no configuration was found that satisfies the hard constraints.
    """

    numbers: Mechanism
    q: np.ndarray
    degrees_of_freedom: tuple[int, ...]


def numeric_probe(mechanism: Mechanism) -> NumericProbe:
    """The mechanism with numbers for its symbols, and a generic configuration (nq,), near home if possible.

    Where the constraints can be assembled near home, the configuration satisfies them, so that the mobility
    of an over-constrained loop is found. Of several such configurations it is the one at which the
    constraints have the highest rank, since others may be singular. Unless a home is given that is on their
    branch, others with a higher rank are searched: near zeros, links may coincide, with more degrees of
    freedom than the linkage has on the branch that is meant.
    """
    numbers = kinematics_near(mechanism)
    generic = _near_home(numbers, 1.0)
    if not hard_constraints(numbers):
        return NumericProbe(numbers, generic, (numbers.nv,))
    found = [assembled(numbers, _near_home(numbers, factor)) for factor in DISPLACEMENTS]
    consistent = [(rank(numeric_rows(numbers, q)), q) for q in found if q is not None]
    branches = dict([max(consistent, key=lambda x: x[0])]) if consistent else {}
    if mechanism.home is None or not _is_at_home(numbers, [*branches]):
        branches |= _branches_far_from_home(numbers, branches)
    ranks = sorted(branches, reverse=True)
    q = branches[ranks[0]] if ranks else generic
    return NumericProbe(numbers, q, tuple(numbers.nv - r for r in ranks))


def _is_at_home(numbers: Mechanism, ranks: list[int]) -> bool:
    """Whether home is a regular configuration on the branch of this rank, except that it may be rounded, or
    belong to other values of symbols.
    """
    home = _home(numbers)
    q = assembled(numbers, home, 0.0)
    if q is None:
        return False
    is_closed = (np.abs(q - home) <= ROUNDED_HOME * _coordinate_sizes(numbers)).all()
    return bool(is_closed and np.linalg.matrix_rank(numeric_rows(numbers, q, 0.0), tol=REGULAR) in ranks)


def _branches_far_from_home(numbers: Mechanism, near: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """By rank, configurations on other branches, if their rank may be higher, on which all moves that moves
    near home: an over-constrained loop may have isolated configurations, at which it is rigid.
    """
    branches: dict[int, np.ndarray] = {}
    rows_near = [numeric_rows(numbers, q) for q in near.values()]
    highest = max(near, default=-1)
    if any(highest >= min(len(A), numbers.nv - 1) for A in rows_near):
        return branches
    if highest >= (limit := _highest_rank(numbers)):
        return branches
    # constraints without a solution need the time of all iterations
    count = STARTS if near else CONFIGURATIONS
    for start in random_configurations(numbers, displacement=FAR, count=count):
        q = assembled(numbers, start, iterations=FAR_ITERATIONS)
        if q is None:
            continue
        A = numeric_rows(numbers, q)
        is_regular = np.linalg.matrix_rank(A, tol=REGULAR) == rank(A)
        if is_regular and rank(A) <= limit and all(_moving(A)[_moving(B)].all() for B in rows_near):
            branches.setdefault(rank(A), q)
        if limit in branches:
            break
    return {r: q for r, q in branches.items() if r not in near}


def _highest_rank(numbers: Mechanism) -> int:
    """A rank that the constraints exceed at no configuration at which the mechanism moves: that at open
    configurations in general position, since singularities only lower it.
    """
    with np.errstate(all="ignore"):  # formulas may have no value there
        rows = [numeric_rows(numbers, q) for q in random_configurations(numbers)]
    ranks = [rank(A) for A in rows if np.isfinite(A).all()]
    return min(numbers.nv - 1, max(ranks, default=numbers.nv))


def _moving(A: np.ndarray) -> np.ndarray:
    """Which velocities (nv,) are not zero for all v with A v = 0."""
    allowed = np.linalg.svd(A)[2][rank(A) :]
    return np.abs(allowed).max(axis=0, initial=0) > LOCKED


def warn_of_branches(probe: NumericProbe) -> None:
    """Gives a ZwangWarning where the branch that is meant is not certain; called by a public function."""
    numbers, _, degrees_of_freedom = probe
    if len(degrees_of_freedom) == 1:
        return
    meant = "give `home`, a configuration that satisfies the constraints, on the branch that is meant"
    if degrees_of_freedom:
        reason = (
            "has branches (assembly modes) with different degrees of freedom, "
            f"{' and '.join(map(str, degrees_of_freedom))}; as its `home` is no regular "
            f"configuration on one of them, the result holds on that with {degrees_of_freedom[0]}; {meant}"
        )
    else:
        reason = (
            "has no configuration near home, with values near 1 for its symbols, that satisfies its hard "
            f"constraints: their rank is that at one which violates them; {meant}, or numbers for lengths"
        )
    warnings.warn(f"mechanism {numbers.name!r} {reason}", ZwangWarning, stacklevel=4)


def kinematics_near(mechanism: Mechanism, value: Callable[[sp.Expr], Any] = value_near) -> Mechanism:
    """The mechanism with numbers for its symbols and unit masses, which have no effect on the kinematics."""
    unit_masses = tuple(replace(body, mass=1, inertia=(1, 1, 1)) for body in mechanism.bodies)
    return mechanism_in_scalars(mechanism.replace(bodies=unit_masses), value)


def constrained_configurations(mechanism: Mechanism, count: int) -> list[dict[str, float]]:
    """Random values of the parameters, the time and the coordinates, by name, near the numeric probe,
    which satisfy the hard constraints; fewer than `count` where these cannot be assembled.
    """
    rng, found, centre = random.Random(count), [], numeric_probe(mechanism).q
    for _ in range(ATTEMPTS * count):
        # near the values of the numeric probe, in their order, so that ranges are not empty
        values = {s: value_near(sp.Symbol(s)) * rng.uniform(0.995, 1.005) for s in mechanism.symbols}

        def value(x: sp.Expr, values: dict[str, float] = values) -> float:
            return float(substitute_in(x, {s: values[s.name] for s in free_symbols_in(x)}))

        numbers, t = kinematics_near(mechanism, value), rng.uniform(0.1, 0.9)
        displacement = np.array([rng.uniform(-0.4, 0.4) for _ in range(mechanism.nv)])
        displacement *= _displacement_sizes(numbers)
        start = integrate_configuration(numbers.tree, centre, displacement).astype(float)
        q = assembled(numbers, start, t)
        if q is not None:
            coordinates = dict(zip(mechanism.coordinate_names, map(float, q), strict=True))
            found.append({"t": t, **values, **coordinates})
        if len(found) == count:
            break
    return found


def refined(mechanism: Mechanism, values: dict[str, float], digits: int) -> dict[str, sp.Expr] | None:
    """The values of `constrained_configurations`, with coordinates that satisfy the constraints to this
    number of digits; None where these contradict each other by rounding, as over-constrained loops do.
    """
    known: dict[str, sp.Expr] = {name: sp.Float(x, digits) for name, x in values.items()}

    def value(x: sp.Expr) -> sp.Expr:
        return sp.N(substitute_in(x, {s: known[s.name] for s in free_symbols_in(x)}), digits)

    numbers = kinematics_near(mechanism, value)
    q = np.array([known[name] for name in mechanism.coordinate_names], dtype=object)
    for _ in range(REFINEMENTS):
        A, _, violation = velocity_level_rows_at(numbers, q, known["t"])
        if all(abs(g) < 10.0 ** (LOST_DIGITS - digits) for g in violation):
            coordinates = (sp.N(x, digits) for x in q)
            return {**known, **dict(zip(mechanism.coordinate_names, coordinates, strict=True))}
        # a step in floats is exact to the digits that are known already
        step = -np.linalg.pinv(A.astype(float), rcond=1e-10) @ violation.astype(float)
        q = integrate_configuration(numbers.tree, q, step)
    return None


def rows_at_home(probe: NumericProbe) -> np.ndarray:
    """The rows, as by `numeric_rows`, by which velocities are chosen: at time 0 and home, closed exactly, if
    the constraints are regular there, and otherwise those of the probe.
    """
    numbers, q, _ = probe
    rows = numeric_rows(numbers, q)
    home = assembled(numbers, _home(numbers), 0.0) if len(rows) else None
    if home is None:
        return rows
    at_home = numeric_rows(numbers, home, 0.0)
    return at_home if np.linalg.matrix_rank(at_home, tol=REGULAR) == rank(rows) else rows


def _home(numbers: Mechanism) -> np.ndarray:
    return normalized_configuration(numbers.tree, np.array(numbers.home or numbers.neutral, dtype=float))


def _displacement_sizes(numbers: Mechanism) -> np.ndarray:
    """The sizes (nv,) of large displacements, in proportion to the mechanism."""
    return np.array(displacement_sizes(numbers), dtype=float)


def _coordinate_sizes(numbers: Mechanism) -> np.ndarray:
    """The sizes (nq,) of large changes of coordinates; see `_displacement_sizes`."""
    sizes, slides = np.ones(numbers.nq), translations(numbers.tree)
    sizes[[*slides.values()]] = _displacement_sizes(numbers)[[*slides]]
    return sizes


def _near_home(numbers: Mechanism, factor: float) -> np.ndarray:
    """The home configuration with a different displacement of each coordinate."""
    q = np.array([float(x) for x in (numbers.home or numbers.neutral)], dtype=float)
    sizes = _coordinate_sizes(numbers)
    for joint in numbers.joints:
        for k, part in zip(range(joint.q.start, joint.q.stop), joint.joint.coordinates, strict=True):
            q[k] += 0.0 if part == "qw" else factor * (0.11 + 0.037 * ((7 * k) % 5)) * sizes[k]
    return normalized_configuration(numbers.tree, q).astype(float)


def random_configurations(
    numbers: Mechanism,
    centre: np.ndarray | None = None,
    displacement: float = 0.7,
    count: int = CONFIGURATIONS,
) -> list[np.ndarray]:
    """Configurations in general position around one, by default home, which need not satisfy the constraints.

    displacement: the largest one of a coordinate, relative to the largest length of the mechanism, or in rad.
    """
    rng, home = random.Random(0), _home(numbers) if centre is None else centre
    sizes = displacement * _displacement_sizes(numbers)
    return [
        integrate_configuration(
            numbers.tree, home, sizes * np.array([rng.uniform(-1, 1) for _ in range(numbers.nv)])
        ).astype(float)
        for _ in range(count)
    ]


def row_sizes_near(numbers: Mechanism, constraints: Sequence[Any] | None = None) -> np.ndarray:
    """The sizes (k,) of the rows of constraints, by default of all hard ones: the median change by large
    displacements at random configurations near home.

    Relative to them ranks and violations depend neither on the unit of length nor on factors of formulas.
    """
    sizes: list[float] = []
    for c in hard_constraints(numbers) if constraints is None else constraints:
        if type(c) in LENGTHS:  # the same at all configurations
            sizes += map(float, row_changes(numbers, [c], ()))
            continue
        found = []
        for q in random_configurations(numbers):
            A = np.asarray(velocity_level_rows_at(numbers, q, TIME, [c])[0], dtype=float)
            found.append(np.array(row_changes(numbers, [c], A), dtype=float))
        # without configurations where the row is zero or has no value
        known = [x[np.isfinite(x) & (x > 0)] for x in np.array(found).T]
        sizes += [float(np.median(x)) if len(x) else 1.0 for x in known]
    return np.array(sizes)


def assembled(
    numbers: Mechanism, q: np.ndarray, t: float = TIME, iterations: int = ASSEMBLY_ITERATIONS
) -> np.ndarray | None:
    """A configuration that satisfies the constraints, by Gauss-Newton from q; None if the iteration fails."""
    with np.errstate(all="ignore"):  # formulas may have no derivative at home
        return _assembled(numbers, q, t, iterations)


def _assembled(numbers: Mechanism, q: np.ndarray, t: float, iterations: int) -> np.ndarray | None:
    displacements, sizes = _displacement_sizes(numbers), row_sizes_near(numbers)
    largest = LARGEST_STEP * np.maximum(displacements, 1.0)
    slides = translations(numbers.tree)
    for _ in range(iterations):
        A, _, violation = (np.asarray(x, dtype=float) for x in velocity_level_rows_at(numbers, q, t))
        if not (np.isfinite(A).all() and np.isfinite(violation).all()):
            return None
        rounded = ROUNDED * np.abs(A[:, [*slides]]) @ np.abs(q[[*slides.values()]])
        if (np.abs(violation) < CLOSURE_TOLERANCE * (sizes + rounded)).all():
            return q
        scaled = A * displacements / sizes[:, None]
        step = -displacements * (np.linalg.pinv(scaled, rcond=1e-10) @ (violation / sizes))
        step = step / max(1.0, (np.abs(step) / largest).max())
        before, q = q, integrate_configuration(numbers.tree, q, step).astype(float)
        if (q == before).all():  # contradictory constraints: the sum of squares is least
            return None
    return None


def numeric_rows(numbers: Mechanism, q: np.ndarray, t: float = TIME) -> np.ndarray:
    """A (k, nv) of all hard constraints in numbers, relative to their sizes; see `closed_rows` and
    `relative_rows`.
    """
    hard = hard_constraints(numbers)
    if not hard:
        return np.zeros((0, numbers.nv))
    A = np.array(closed_rows(numbers, q, np.zeros(numbers.nv, int), t).A, dtype=float)
    return relative_rows(numbers, A, row_sizes_near(numbers))


def relative_rows(numbers: Mechanism, A: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Rows A (k, nv) of these sizes (k,), without unit: of displacements relative to large ones."""
    return A * _displacement_sizes(numbers) / sizes[:, None]


def rank(A: np.ndarray) -> int:
    """The rank of A (k, nv), whose rows are relative to their sizes."""
    return int(np.linalg.matrix_rank(A, tol=RANK * max(1.0, np.abs(A).max(initial=0)))) if A.size else 0


def independent_columns(A: np.ndarray) -> list[int]:
    """The independent velocities of A v = 0: the columns without a pivot by complete pivoting."""
    R = A.copy()
    dependent: list[int] = []
    for _ in range(rank(A)):
        largest = np.abs(R) >= (1 - TIE) * np.abs(R).max()
        i, j = np.unravel_index(np.argmax(largest), R.shape)
        row = R[i] / R[i, j]
        R = np.delete(R - np.outer(R[:, j], row), i, axis=0)
        R[:, j] = 0
        dependent.append(int(j))
    return [k for k in range(A.shape[1]) if k not in dependent]


def independent_rows(A: np.ndarray) -> list[int]:
    """The numbers of independent rows of A; of dependent rows the first are chosen."""
    kept: list[int] = []
    for i in range(len(A)):
        if rank(A[[*kept, i]]) > len(kept):
            kept.append(i)
    return kept
