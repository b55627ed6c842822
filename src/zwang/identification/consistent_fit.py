"""Physically consistent parameters that reproduce estimated base parameters, near those of a model.

The base parameters do not tell all parameters. Of those that reproduce them, the ones nearest to the model's
are chosen: with the covariance C of the estimate beta and the pseudo-inertia P_k of body k,
    minimise  1/2 |C^-1/2 (B pi - beta)|^2 + w (sum_k d(P_k | P_k0) + sum_j d(x_j | x_j0)),
    d(P | P0) = -log det P + tr(P0^-1 P)  (the entropic, or log-det Bregman, divergence),
    d(x | x0) = (x - x0 log x) / s  for x >= 0,  else (x - x0)^2 / 2 s^2,
where x are the other parameters. The scale s is |x0|, for which d(x | x0) is the entropic divergence of
numbers, and at least a share of the x that alone would exert the measured forces, as a model without friction
does not say that it is small. The problem is convex, so that its only minimum does not depend on the start,
and every iterate is physically consistent, as the divergence is infinite where a P_k is singular. It is
solved by Newton's method for falling weights w, until the forces no longer change with the weight: the model
acts where the data say nothing.
Sources: Lee, Wensing, Park, IEEE Trans. Robotics 36 (2020) 348, for the divergence; Wensing,
Kim, Slotine (2018) for P; Boyd, Vandenberghe, Convex Optimization (2004), Section 11.3, for the falling
weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from zwang.errors import DescriptionError
from zwang.identification.base_parameters import BaseParameters, Combinations
from zwang.identification.parameters import INERTIAL_KINDS, INERTIAL_NAMES, Parameter, body_origins
from zwang.identification.pseudo_inertia import (
    PSEUDO_INERTIA_UNITS,
    SYMMETRIC_BASIS,
    is_consistent,
    parameters_of_pseudo_inertia,
    pseudo_inertia,
)
from zwang.mechanism.bodies import Body
from zwang.mechanism.force_elements import Damper, PointSpring, Spring
from zwang.mechanism.mechanism import Mechanism

FIRST_WEIGHT, SMALL_WEIGHT, LAST_WEIGHT = 1e4, 1e-4, 1e-10  # w, in squared standard deviations of the data
UNMOVED = 0.01  # change of the forces [standard deviations] by a smaller weight at which small ones end
LARGEST_WEIGHT = 0.1  # that still is small: the model changes beta by less than its standard deviation
REDUCTION = 0.1  # of w from one minimisation to the next
DECREMENT = 1e-6  # half the squared Newton decrement at which a minimisation ends
MASSLESS = 1e-6  # kg, of a body whose inertia the model does not say
UNKNOWN_BODY = np.diag([0.01, 0.01, 0.01, 1.0])  # 1 kg with radii of gyration of 0.14 m
SINGULAR = 1e-13  # ratio of the eigenvalues of a P that rounding cannot tell from a singular one
STEPS = 500  # of Newton's method for one weight at most
LEAST_EIGENVALUE = 1e-4  # of a model's pseudo-inertia, relative to the largest: files have point masses
LARGEST_SHARE = 1e-4  # w by the squared distance, where beta is far from every consistent mechanism
ROUNDING = 1e-9  # relative decrement of the cost that counts as rounding
EXACT = 1e-7  # relative error of beta below which it counts as exact
SHARE = 0.1  # of the measured forces, which a parameter of the size of its scale exerts at least
LEAST_PULL = 1e-4  # of its scale: the model value that stands for 0, of a nonnegative parameter


@dataclass(frozen=True)
class ConsistentFit:
    """pi (parameters,) of a physically consistent mechanism; converged: whether Newton's method did, for a
    small w; weight: the smallest w for which it did; distance: |C^-1/2 (B pi -
    beta)| [standard deviations].
    """

    pi: np.ndarray
    converged: bool
    weight: float
    distance: float


@dataclass(frozen=True)
class Divergence:
    """The divergence of parameters from those of a model, with its derivatives.

    inverses (bodies, 4, 4): P_k0^-1. x0: the other parameters of the model, above their lower bounds. scale:
    s. lower, upper: their bounds, infinite where there are none.
    """

    inverses: np.ndarray
    x0: np.ndarray
    scale: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @classmethod
    def of(cls, prior: np.ndarray, scale: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Divergence:
        """The divergence from the parameters `prior`, whose bodies are made consistent first. scale, lower,
        upper: of the other parameters, which are the last ones.
        """
        bodies = (len(prior) - len(scale)) // 10
        P = np.array([raised(pseudo_inertia(prior[10 * k : 10 * k + 10])) for k in range(bodies)])
        scale = np.maximum(scale, np.where(np.isfinite(lower), np.abs(lower), 0))
        x0 = np.maximum(prior[10 * bodies :], lower + LEAST_PULL * scale)
        return cls(np.linalg.inv(P.reshape(-1, 4, 4)), x0, scale, lower, upper)

    def joined(self, pi: np.ndarray, share: float) -> Divergence:
        """(1 - share) d(. | model) + share d(. | pi), up to a constant, for consistent pi."""
        first = 10 * len(self.inverses)
        inverses, x = np.linalg.inv(_pseudo_inertias(pi[:first])), pi[first:]
        mean, scale = (1 - share) * self.x0 + share * x, self.scale
        below = np.isfinite(self.lower)
        low = np.where(below, self.lower, 0)
        # a (x - l) - b log (x - l) has its minimum at l + b / a
        own = np.maximum(scale, x - low)
        a = (1 - share) / scale + share / own
        b = (1 - share) * (self.x0 - low) / scale + share * (x - low) / own
        x0, scale = np.where(below, low + b / a, mean), np.where(below, 1 / a, scale)
        return replace(self, inverses=(1 - share) * self.inverses + share * inverses, x0=x0, scale=scale)

    def start(self) -> np.ndarray:
        """The model's parameters, moved inside their bounds."""
        bodies = [parameters_of_pseudo_inertia(P) for P in np.linalg.inv(self.inverses)]
        width = self.upper - self.lower
        room = np.where(np.isfinite(width), 0.1 * width, LEAST_PULL * self.scale)
        x = np.clip(self.x0, self.lower + room, self.upper - room)
        return np.concatenate([*bodies, x])

    def is_inside(self, pi: np.ndarray) -> bool:
        """Whether every body is consistent, and every other parameter between its bounds."""
        first = 10 * len(self.inverses)
        x = pi[first:]
        if not np.isfinite(pi).all() or not ((x > self.lower) & (x < self.upper)).all():
            return False
        values = np.linalg.eigvalsh(_pseudo_inertias(pi[:first]))
        return bool((values[:, 0] > SINGULAR * values[:, -1]).all())

    def value(self, pi: np.ndarray) -> float:
        """d at parameters that are inside."""
        first = 10 * len(self.inverses)
        P, x = _pseudo_inertias(pi[:first]), pi[first:]
        bodies = -np.linalg.slogdet(P)[1].sum() + np.einsum("kij,kij->", self.inverses, P)
        below, above = np.isfinite(self.lower), np.isfinite(self.upper)
        room, pull = (x - self.lower)[below], (self.x0 - self.lower)[below]
        others = ((room - pull * np.log(room)) / self.scale[below]).sum()
        others -= np.log((self.upper - x)[above]).sum()
        return float(bodies + others + (((x - self.x0) / self.scale)[~below] ** 2).sum() / 2)

    def local_coordinates(self, pi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """T and the gradient of d by y, with pi + T y, for coordinates y in which the Hessian of d is 1.

        For a body P + L X L^T with P = L L^T and X = sum_a y_a S_a, S_a orthonormal: then -d^2 log det P is
        |X|^2, whatever the condition of P.
        """
        first = 10 * len(self.inverses)
        gradient, T = np.zeros(len(pi)), np.zeros((len(pi), len(pi)))
        for k, L in enumerate(np.linalg.cholesky(_pseudo_inertias(pi[:first]))):
            part = slice(10 * k, 10 * k + 10)
            changes = L @ SYMMETRIC_BASIS @ L.T
            T[part, part] = parameters_of_pseudo_inertia(changes).T
            pull = np.einsum("ij,aij->a", self.inverses[k], changes)
            gradient[part] = pull - np.trace(SYMMETRIC_BASIS, axis1=1, axis2=2)
        x = pi[first:]
        below, above = np.isfinite(self.lower), np.isfinite(self.upper)
        low = np.divide(1, x - self.lower, out=np.zeros_like(x), where=below)
        high = np.divide(1, self.upper - x, out=np.zeros_like(x), where=above)
        pull = np.where(below, self.x0 - np.where(below, self.lower, 0), 0)
        slope = np.where(below, (1 - pull * low) / self.scale, (x - self.x0) / self.scale**2) + high
        curvature = np.where(below, pull * low**2 / self.scale, self.scale**-2) + high**2
        size = 1 / np.sqrt(curvature)
        T[range(first, len(pi)), range(first, len(pi))] = size
        gradient[first:] = size * slope
        return T, gradient


def consistent_parameters(
    base: BaseParameters | Combinations,
    beta: np.ndarray,
    root: np.ndarray,
    prior: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    start: np.ndarray | None = None,
) -> ConsistentFit:
    """Physically consistent pi that reproduces beta, by Newton's method on a convex problem.

    beta (n,): the estimate. root (n, m): F of its covariance F F^T. prior (parameters,): pi of the model.
    bounds: (lower, upper) (parameters,) of the parameters that are not inertial. start: consistent parameters
    to start from, by default those of the model. Raises DescriptionError for a start that is not consistent.
    """
    M, target = whitened(base, beta, root, prior)
    first = 10 * [p.kind for p in base.parameters].count("mass")
    scale = scales(M[:, first:], target, prior[first:])
    divergence = Divergence.of(prior, scale, *(b[first:] for b in bounds))
    pi = divergence.start() if start is None else np.array(start, dtype=float)
    if not divergence.is_inside(pi):
        raise DescriptionError("the start of the fit is not physically consistent; give a positive definite "
                               "pseudo-inertia of every body")  # fmt: skip
    weight, reached, distance = FIRST_WEIGHT, float("inf"), float(np.linalg.norm(M @ pi - target))
    while weight >= LAST_WEIGHT:
        nearer, converged = minimised(M, target, divergence, weight, pi)
        if not converged:  # beta is far from every consistent pi, so that a P_k is nearly singular
            break
        moved = float(np.linalg.norm(M @ (nearer - pi)))
        pi, reached, weight = nearer, weight, REDUCTION * weight
        distance = float(np.linalg.norm(M @ pi - target))
        if weight < SMALL_WEIGHT and moved <= UNMOVED * max(1.0, distance):
            break
    small = max(LARGEST_WEIGHT, LARGEST_SHARE * distance**2)
    return ConsistentFit(pi, reached <= small, reached, distance)


def scales(M: np.ndarray, target: np.ndarray, model: np.ndarray) -> np.ndarray:
    """The scales (n,) of parameters that are not inertial: their values in the model, and at least those that
    alone would exert the share `SHARE` of the measured forces.

    M (rows, n): the whitened columns of the parameters. target (rows,): the whitened forces.
    """
    columns = np.linalg.norm(M, axis=0)
    share = SHARE * max(float(np.linalg.norm(target)), 1.0)
    least = np.divide(share, columns, out=np.zeros(len(columns)), where=columns > 0)
    size = np.maximum(np.abs(model), least)
    return np.where(size > 0, size, 1.0)  # any for what is 0 and exerts no forces


def whitened(base: BaseParameters | Combinations, beta: np.ndarray, root: np.ndarray, prior: np.ndarray
             ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """L^-1 B (n, parameters) and L^-1 beta (n,), whose errors are independent and of unit variance: C = F F^T
    = L L^T with the root F (n, m), and with at least the relative error `EXACT` of beta.
    """
    size = np.abs(base.matrix) @ np.abs(prior) + np.abs(beta)
    # [F D]^T = Q L^T, so that L is found without C, whose condition number is that of F squared
    rows = np.vstack([root.T, np.diag(EXACT * size)])
    deviations = np.linalg.norm(rows, axis=0)
    U = np.linalg.qr(rows / deviations, mode="r")
    columns = np.column_stack([base.matrix, beta]) / deviations[:, None]
    found = solve_triangular(U, columns, trans=1)
    return found[:, :-1], found[:, -1]


def minimised(M: np.ndarray, target: np.ndarray, divergence: Divergence, weight: float, pi: np.ndarray
               ) -> tuple[np.ndarray, bool]:  # fmt: skip
    """The minimum of |M pi - target|^2 / 2 w + d(pi) for one weight w from a consistent pi, and whether
    Newton's method reached it (Boyd, Vandenberghe, Alg. 9.5).
    """

    def cost(pi: np.ndarray) -> float:
        error = M @ pi - target
        return float(error @ error) / 2 / weight + divergence.value(pi)

    now = cost(pi)
    for _ in range(STEPS):
        # Newton's step y minimises |M T y + e|^2 / w + |y + g|^2
        T, g = divergence.local_coordinates(pi)
        e = (M @ pi - target) / np.sqrt(weight)
        A = np.vstack([M @ T / np.sqrt(weight), np.eye(len(pi))])
        Q, R = np.linalg.qr(A)
        y = solve_triangular(R, -Q.T @ np.concatenate([e, g]))
        step, decrement = T @ y, float((A @ y) @ (A @ y))
        if decrement / 2 <= DECREMENT:
            return pi, True
        length = 1.0
        while not divergence.is_inside(pi + length * step) or (
            cost(pi + length * step) > now - 0.1 * length * decrement
        ):
            length /= 2
            if length < 1e-12:  # rounding: the cost no longer falls
                return pi, decrement <= max(1e-3, ROUNDING * abs(now))
        pi = pi + length * step
        now = cost(pi)
    return pi, False


def raised(P: np.ndarray) -> np.ndarray:
    """P with its eigenvalues raised to `LEAST_EIGENVALUE` times the largest one; `UNKNOWN_BODY` instead of
    the P of a body whose model has no mass.
    """
    values, vectors = np.linalg.eigh(P)
    if not P[3, 3] > MASSLESS:
        return UNKNOWN_BODY
    return (vectors * np.maximum(values, LEAST_EIGENVALUE * values[-1])) @ vectors.T


def _pseudo_inertias(pi: np.ndarray) -> np.ndarray:
    """P (bodies, 4, 4) of the inertial parameters (10 bodies,)."""
    return np.einsum("ka,aij->kij", pi.reshape(-1, 10), PSEUDO_INERTIA_UNITS)


def with_parameters(m: Mechanism, parameters: Sequence[Parameter], pi: ArrayLike) -> Mechanism:
    """The mechanism with the parameters pi, numbers, or symbols of those that are not inertial. A body gets
    the inertia of all that is rigidly attached to it, and the attached bodies get none. Offsets are left out:
    a joint has none.

    Raises DescriptionError for parameters that are not physically consistent.
    """
    values = np.asarray(pi).tolist()
    value = {p.name: x for p, x in zip(parameters, values, strict=True)}
    found = {p.element: x for p, x in zip(parameters, values, strict=True) if p.element is not None}
    bodies = {b.name: b for b in m.bodies}
    if any(p.kind == INERTIAL_KINDS[0] for p in parameters):
        for origin in body_origins(m):
            names = (head if not tail else f"{head}_{tail}" for head, tail in _split_names(origin.name))
            bodies[origin.name] = _body_with(bodies[origin.name], np.array([value[n] for n in names]))
            for name in origin.attached:
                bodies[name] = replace(bodies[name], mass=0, com=(0, 0, 0), inertia=(0, 0, 0))
    for name, body in bodies.items():
        joints = tuple(
            replace(j, **{kind: value[f"{kind}_{j.name}"] for kind in ("armature", "friction")
                          if f"{kind}_{j.name}" in value})
            for j in body.joints
        )  # fmt: skip
        if joints:
            bodies[name] = replace(body, joint=joints)
    return m.replace(
        bodies=tuple(bodies.values()), forces=_forces_with(m, found), tendons=_tendons_with(m, found)
    )


def _split_names(body: str) -> list[tuple[str, str]]:
    """(head with the body's name, tail) of the names of the ten inertial parameters of a body."""
    parts = (name.partition("_") for name in INERTIAL_NAMES)
    return [(f"{head}_{body}", tail) for head, _, tail in parts]


def _body_with(body: Body, pi: np.ndarray) -> Body:
    """The body with the inertial parameters pi (10,) about its origin."""
    if not is_consistent(pi):
        raise DescriptionError(
            f"the parameters of body {body.name!r} are not physically consistent; fit them with "
            "consistent=True"
        )
    m = pi[0]
    if m <= 0:
        return replace(body, mass=0, com=(0, 0, 0), inertia=(0, 0, 0))
    c = pi[1:4] / m
    xx, xy, yy, xz, yz, zz = pi[4:]
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    centred = I - m * (c @ c * np.eye(3) - np.outer(c, c))
    return replace(body, mass=m, com=tuple(c), inertia=tuple(map(tuple, (centred + centred.T) / 2)))


def _forces_with(m: Mechanism, found: dict[Any, Any]) -> tuple:
    """The forces with identified damping and stiffness, by unit element. The first of like elements has the
    coefficient of all, and the others have 0.
    """
    left = dict(found)

    def taken(unit: Any, own: Any) -> Any:
        """The coefficient of an element; its own if it is not identified."""
        if unit not in left:
            return own
        value, left[unit] = left[unit], 0.0
        return value

    forces: list = []
    for force in m.forces:
        if isinstance(force, Damper):
            whole = taken(Damper(force.joint, 1), force.coefficient)
            powers = [Damper(force.joint, 0, higher=(*[0] * k, 1)) for k in range(len(force.higher))]
            higher = tuple(taken(unit, c) for unit, c in zip(powers, force.higher, strict=True))
            forces.append(Damper(force.joint, whole, higher))
        elif isinstance(force, Spring):
            units = [replace(force, stiffness=(*[0] * k, 1)) for k in range(len(force.stiffness))]
            stiffness = tuple(taken(u, k) for u, k in zip(units, force.stiffness, strict=True))
            forces.append(replace(force, stiffness=stiffness))
        elif isinstance(force, PointSpring):
            stiffness = taken(replace(force, stiffness=1, damping=0), force.stiffness)
            damping = taken(replace(force, stiffness=0, damping=1), force.damping)
            forces.append(replace(force, stiffness=stiffness, damping=damping))
        else:
            forces.append(force)
    damped = {force.joint for force in forces if isinstance(force, Damper)}
    for joint in m.joints:
        if Damper(joint.name, 1) in found and joint.name not in damped:
            forces.append(Damper(joint.name, found[Damper(joint.name, 1)]))
    return tuple(forces)


def _tendons_with(m: Mechanism, found: dict[Any, Any]) -> tuple:
    """The tendons with identified damping and stiffness, by unit element."""
    return tuple(
        replace(
            tendon,
            stiffness=found.get(replace(tendon, stiffness=1, damping=0), tendon.stiffness),
            damping=found.get(replace(tendon, stiffness=0, damping=1), tendon.damping),
        )
        for tendon in m.tendons
    )
