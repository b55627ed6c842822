"""Mechanisms with closed loops by independent velocities: v = B(q) u.

The hard constraints are A(q) v = 0, and the independent velocities u = S v are some of v. Then
    [S; A] v = [u; 0],   v = B u,   and with A v_dot = b:   [S; A] v_dot = [u_dot; b].
The rank is judged with rows of A of unit length, as they have different units.
Virtual velocities are B du, so that the constraint forces A^T lambda do no work on them: B^T A^T = 0. The
constrained inverse dynamics is B^T tau = B^T Y pi, linear in pi as that of a tree. A may have dependent rows.
Source: Khalil, Dombre, Modeling, Identification and Control of Robots (2002), Sections 10.3 and 12.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zwang.api.arguments import validation
from zwang.api.compilation.cache_key import IdentityKey
from zwang.api.compilation.programs import compile_function
from zwang.constraint.hard import all_velocity_level_rows, depends_on_time, is_hard_constraint
from zwang.errors import DependentVelocitiesError, DescriptionError, ShapeError, SolveError, StateError
from zwang.kinematics.configuration import integrate_configuration
from zwang.mechanism.labelled_arrays import without_labels
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments

SINGULAR = 1e-7  # ratio of the singular values of [S; A] beyond which the independent velocities depend
REGULAR = 1e-3  # the same ratio of random states
CLOSED = 1e-11  # violation of a closed loop, relative to the longest row of A
SHORTEST = 1e-6  # row of A, relative to the longest; a shorter one consists of rounding errors
CORRECTIONS = 30  # of a configuration, by Newton's method
TRIES = 20  # of closing as many random configurations as are needed
LARGEST_CORRECTION = 0.3  # of one iteration [rad, m]


@dataclass(frozen=True)
class ClosedLoops:
    """The hard constraints of a mechanism, with compiled rows.

    rows: (A, b, violations) of q and v. move: the configuration after a displacement (nv,) on its manifold.
    """

    mechanism: Mechanism
    _rows: Any
    _move: Any

    def rows(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A (..., k, nv), b (..., k) with A v_dot = b, and violations (..., k), 0 at velocity level."""
        A, b, g = self._rows(q, v)
        return A.reshape(*q.shape[:-1], -1, self.mechanism.nv), b, g

    def closed(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The configurations (..., nq) near q that close the loops, by Newton's method with the least change,
        and whether they do (...).
        """
        zero = np.zeros((*q.shape[:-1], self.mechanism.nv))
        for _ in range(CORRECTIONS):
            A, _, g = self.rows(q, zero)
            step = -(np.linalg.pinv(A, rcond=1e-9) @ g[..., None])[..., 0]
            q = self._move(q, _limited(step))
        A, _, g = self.rows(q, zero)
        return q, _is_closed(A, g)

    def near(self, count: int, rng: np.random.Generator, displacements: np.ndarray
             ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Random configurations (count, nq), the home moved by displacements (nv,), then closed; and whether
        these are (count,).
        """
        home = np.tile(np.array(_home(self.mechanism), dtype=float), (count, 1))
        return self.closed(self._move(home, displacements * rng.normal(size=(count, self.mechanism.nv))))

    def random_motions(
        self, count: int, rng: np.random.Generator, rate: float, displacements: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """At most `count` random q, v and a (..., n) that satisfy the loops, and N (..., nv, f) with A N = 0,
        whose columns are the f independent motions in units of the displacements.

        rate [1/s], displacements (nv,): as for `LoopClosure.random_states`.
        """
        q = np.zeros((0, self.mechanism.nq))
        for _ in range(TRIES):
            found, is_closed = self.near(count, rng, displacements)
            q = np.concatenate([q, found[is_closed]])
            if len(q) >= count:
                break
        A = self.rows(q, np.zeros((len(q), self.mechanism.nv)))[0] * displacements
        _, s, Vt = np.linalg.svd(A / _sizes(A)[..., None])
        ranks = (s > REGULAR * s.max(axis=-1, keepdims=True, initial=0.0)).sum(axis=-1)
        rank = int(ranks.max(initial=0))
        q, Vt = q[ranks == rank][:count], Vt[ranks == rank][:count]
        N = displacements[:, None] * Vt[:, rank:].swapaxes(-1, -2)
        u, rates = rng.normal(size=(2, len(q), N.shape[-1], 1))
        v = rate * (N @ u)[..., 0]
        A, b, _ = self.rows(q, v)
        A = A * displacements
        sizes = _sizes(A)[..., None]
        along = np.linalg.pinv(A / sizes, rcond=REGULAR) @ (b[..., None] / sizes)
        return q, v, (displacements[:, None] * along + rate**2 * (N @ rates))[..., 0], N


@dataclass(frozen=True)
class LoopClosure(ClosedLoops):
    """Hard constraints, and the independent velocities by number."""

    names: tuple[str, ...]
    numbers: tuple[int, ...]

    def stacked(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[S; A] (..., n + k, nv), each row divided by its size, and these sizes (..., n + k)."""
        S = np.zeros((*A.shape[:-2], len(self.numbers), A.shape[-1]))
        S[..., range(len(self.numbers)), list(self.numbers)] = 1
        sizes = np.concatenate([S.sum(axis=-1), _sizes(A)], axis=-1)
        return np.concatenate([S, A], axis=-2) / sizes[..., None], sizes

    def inverse(self, q: np.ndarray, A: np.ndarray) -> np.ndarray:
        """[S; A]^+ (..., nv, n + k). Raises DependentVelocitiesError where its rank is less than nv."""
        C, sizes = self.stacked(A)
        s = np.linalg.svd(C, compute_uv=False)
        ratio = (
            s[..., self.mechanism.nv - 1] / s[..., 0] if C.shape[-2] >= self.mechanism.nv else 0 * s[..., 0]
        )
        if not (ratio > SINGULAR).all():
            worst = np.unravel_index(int(np.argmin(ratio)), ratio.shape)
            state = np.array2string(q[worst], precision=4)
            raise DependentVelocitiesError(
                f"the velocities of {', '.join(self.names)} do not determine all others at q = {state}; "
                "give other independent velocities, as many as the mechanism has degrees of freedom, or a "
                "motion that avoids this position"
            )
        return np.linalg.pinv(C, rcond=SINGULAR) / sizes[..., None, :]

    def transformation(self, q: np.ndarray) -> np.ndarray:
        """B (..., nv, n) with v = B u."""
        A, _, _ = self.rows(q, np.zeros((*q.shape[:-1], self.mechanism.nv)))
        return self.inverse(q, A)[..., : len(self.numbers)]

    def motion(self, q: np.ndarray, u: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """v and a (..., nv) of the independent velocities u and their rates (..., n), at closed loops q."""
        v = (self.transformation(q) @ u[..., None])[..., 0]
        A, b, _ = self.rows(q, v)
        right = np.concatenate([rates, b], axis=-1)
        return v, (self.inverse(q, A) @ right[..., None])[..., 0]

    def random_states(
        self, count: int, rng: np.random.Generator, rate: float, displacements: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Random q, v and a (count, n) that satisfy the loops, at which u determines v.

        rate [1/s], displacements (nv,): their sizes, of the velocities rate * displacements.

        Raises SolveError where hardly any random configuration can be closed.
        """
        m, n = self.mechanism, len(self.numbers)
        found, many = np.zeros((0, m.nq)), 2 * count + 20
        for _ in range(TRIES):
            q, is_closed = self.near(many, rng, displacements)
            C, _ = self.stacked(self.rows(q, np.zeros((many, m.nv)))[0])
            s = np.linalg.svd(C, compute_uv=False)
            found = np.concatenate([found, q[is_closed & (s[:, m.nv - 1] > REGULAR * s[:, 0])]])
            if len(found) >= count:
                u, rates = displacements[list(self.numbers)] * rng.normal(size=(2, count, n))
                return found[:count], *self.motion(found[:count], rate * u, rate**2 * rates)
        raise SolveError(
            f"the loops of mechanism {m.name!r} cannot be closed near random configurations, or the "
            f"velocities of {', '.join(self.names)} do not determine the others; give a home that closes the "
            "loops, and as many independent velocities as there are degrees of freedom"
        )

    def followed(self, q: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """The configuration (nq,) near q that closes the loops, with those independent coordinates (n,).

        Raises SolveError where there is none.
        """
        m, n = self.mechanism, len(self.numbers)
        places = [m.joint(name).q.start for name in self.names]
        zero = np.zeros(m.nv)
        for _ in range(CORRECTIONS):
            A, _, g = self.rows(q, zero)
            error = np.concatenate([q[places] - wanted, g])
            if np.abs(q[places] - wanted).max() < CLOSED and _is_closed(A, g):
                return q
            C, sizes = self.stacked(A)
            step = -np.linalg.lstsq(C, error / sizes, rcond=SINGULAR)[0]
            q = self._move(q, _limited(step))
        raise SolveError(
            f"the loops of mechanism {m.name!r} cannot be closed at "
            + ", ".join(f"{name} = {x:.4g}" for name, x in zip(self.names, wanted[:n], strict=True))
            + "; give a start nearer to the first sample, smaller steps, or coordinates within its reach"
        )


def _sizes(A: np.ndarray) -> np.ndarray:
    """The lengths (..., k) of the rows of A (..., k, nv), but for those that consist of rounding errors."""
    lengths = np.linalg.norm(A, axis=-1)
    return np.maximum(lengths, SHORTEST * lengths.max(axis=-1, keepdims=True, initial=1e-300))


def _is_closed(A: np.ndarray, violations: np.ndarray) -> np.ndarray:
    """Whether the rows (..., k, nv) of loops are not violated (...)."""
    longest = np.linalg.norm(A, axis=-1).max(axis=-1, initial=0.0)
    return np.abs(violations).max(axis=-1, initial=0.0) <= CLOSED * longest


def _home(m: Mechanism) -> tuple[Any, ...]:
    return m.neutral if m.home is None else tuple(m.home)


def _limited(step: np.ndarray) -> np.ndarray:
    largest = np.abs(step).max(axis=-1, keepdims=True, initial=0.0)
    return step * np.minimum(1, LARGEST_CORRECTION / np.maximum(largest, 1e-300))


def loop_closure(m: Mechanism, independent: Sequence[str]) -> LoopClosure:
    """The compiled constraints of a mechanism without symbols, with independent velocities by name.

    Raises UnknownNameError for a name, and DescriptionError for joints of more than one coordinate, for
    constraints that are soft, depend on time, or have friction, and for none at all.
    """
    names = (independent,) if isinstance(independent, str) else tuple(independent)
    return _loop_closure(IdentityKey(m), names)


@lru_cache(maxsize=16)
def _loop_closure(same: IdentityKey, names: tuple[str, ...]) -> LoopClosure:
    m = same.mechanism
    indices = [m.joint(name) for name in names]
    for index in indices:
        if index.v.stop - index.v.start != 1:
            raise DescriptionError(
                f"independent velocity {index.name!r} belongs to a {index.kind} joint; give joints of one "
                "coordinate"
            )
    if len(set(names)) < len(names) or not names:
        raise DescriptionError(f"independent is {list(names)}; give each independent velocity once")
    if not m.constraints:
        raise DescriptionError(
            f"mechanism {m.name!r} has no constraints, so that all velocities are independent; leave out "
            "independent="
        )
    for c in m.constraints:
        if not is_hard_constraint(c) or depends_on_time(c):
            raise DescriptionError(
                f"constraint {getattr(c, 'name', type(c).__name__)!r} ({type(c).__name__}) is soft, "
                "depends on time, or has friction; independent velocities need hard constraints that do not "
                "depend on time: leave it out with mechanism.replace(constraints=...)"
            )

    numbers = tuple(index.v.start for index in indices)
    return LoopClosure(m, *_compiled(same), names, numbers)


def closed_loops(m: Mechanism) -> ClosedLoops:
    """The compiled hard constraints, independent of time, of a mechanism without symbols."""
    return ClosedLoops(m, *_compiled(IdentityKey(m)))


@lru_cache(maxsize=16)
def _compiled(same: IdentityKey) -> tuple[Any, Any]:
    """The compiled rows and displacements of `ClosedLoops`."""
    m = same.mechanism

    def rows(q: Any, v: Any) -> Any:
        found = all_velocity_level_rows(m, q, v)
        return found.A, found.b, np.array([0 if x is None else x for x in found.position])

    def move(q: Any, step: Any) -> Any:
        return integrate_configuration(m.tree, q, step, 1)

    return (
        compile_function(rows, {"q": m.nq, "v": m.nv}),
        compile_function(move, {"q": m.nq, "step": m.nv}),
    )


@validated_arguments()
def closed_loop_motion(
    mechanism: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    independent: Sequence[str],
    start: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All coordinates, velocities and accelerations of a mechanism with closed loops, from those of its
    motors.

    q (N, n): measured coordinates of the independent joints [rad, m], each sample near the one before; (N,)
    for one joint. v, a, of the same shape: their velocities and accelerations, by default zero. The elements
    of labelled arrays, as of recordings, are read by their labels.
    independent: the n joints by name, as many as the mechanism has degrees of freedom. start (nq,): a
    configuration near that of the first sample, which chooses the branch of the loops; by default the
    mechanism's home.

    Returns q (N, nq), v (N, nv) and a (N, nv), by Newton's method from sample to sample.
    Raises SolveError where the loops cannot be closed, DependentVelocitiesError where the independent
    velocities do not determine the others, UnknownNameError, DescriptionError for other constraints than hard
    holonomic ones, ShapeError and StateError.
    """
    m = validation.numeric_mechanism(mechanism)
    closure = loop_closure(m, independent)
    _check_holonomic(m)
    given = _columns(q, closure.names, "q")
    if given.ndim != 2 or given.shape[1] != len(closure.names):
        raise ShapeError(f"q must have the shape (N, {len(closure.names)}); its shape is {given.shape}")
    others = []
    for name, value in (("v", v), ("a", a)):
        x = np.zeros_like(given) if value is None else _columns(value, closure.names, name)
        if x.shape != given.shape:
            raise ShapeError(f"{name} must have the shape {given.shape} of q; its shape is {x.shape}")
        others.append(x)
    for name, x in zip("qva", (given, *others), strict=True):
        if not np.isfinite(x).all():
            row = int(np.argwhere(~np.isfinite(x))[0][0])
            raise StateError(f"{name} has a value that is not finite in sample {row}; leave it out")
    now = np.array(_home(m) if start is None else validation.configuration(m, start), dtype=float)
    found = np.zeros((len(given), m.nq))
    for k, wanted in enumerate(given):
        now = found[k] = closure.followed(now, wanted)
    return found, *closure.motion(found, *others)


def _columns(values: Any, names: tuple[str, ...], what: str) -> np.ndarray:
    """The values (N, n) of joints as floats, those of a labelled array in the order of the names; one joint's
    may be given as (N,).
    """
    x = validation.real_values(without_labels(values, names, what), what)
    return x[:, None] if len(names) == 1 and x.ndim == 1 else x


def _check_holonomic(m: Mechanism) -> None:
    """Raises DescriptionError for rows without a violation, along which coordinates cannot be followed."""
    q = np.array(_home(m), dtype=float)
    rows = all_velocity_level_rows(m, q, np.zeros(m.nv))
    for name, position in zip(rows.names, rows.position, strict=True):
        if position is None:
            raise DescriptionError(
                f"constraint {name!r} is one of velocities, so that the other coordinates do not follow from "
                "the independent ones but from the whole motion; give q, v and a of all coordinates"
            )
