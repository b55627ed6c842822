"""Forces of constraints: their ideal and working parts, and what joints carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from zwang.algebra.dual import derivative_along
from zwang.constraint.body_loads import constraint_loads
from zwang.dynamics.free_body_diagram import Load, free_body_diagram, subtree_loads
from zwang.errors import DescriptionError, SolveError
from zwang.kinematics.configuration import configuration_rate
from zwang.symbolic import derivation
from zwang.symbolic.expression_forms import value_of
from zwang.symbolic.wrenches import applied_wrenches, is_wrapped, wrenches_on_bodies

if TYPE_CHECKING:
    from zwang.symbolic.equations import Equations

ROUNDS = 200


@dataclass(frozen=True)
class SplitForces:
    """Constraint forces (6 N,) on all bodies, forces in world axes and torques in body axes [N, N m]: total = ideal + working.

    The ideal part does no work on any motion that the constraints allow; powers [W] are those on the actual one (a constraint that
    moves by itself does work on that).
    """

    total: np.ndarray
    ideal: np.ndarray
    working: np.ndarray
    ideal_power: float
    nonideal_power: float


def split_constraint_forces(e: Equations, values: Mapping[Any, Any]) -> SplitForces:
    """The constraint forces on all bodies as numbers, and their ideal and working parts (seed 003, Eqs. 43-50).

    values: for all symbols, by symbol or by name; the sizes N_NAME of forces that work are found if they are not given.
    The working part is M B (B^T M B)^-1 B^T Q^c, the projector P_Bs of Eq. 49 without its square roots.
    """
    known = {str(key): float(value) for key, value in values.items()}
    s, form = e._state, e._form
    for name in e.symbols.sizes:
        if f"N_{name}" not in known:
            known[f"N_{name}"] = _size(e, name, known)
    applied = applied_wrenches(e._scalar_mechanism, e._motion, s.q, s.v, e._inputs)[0]
    mass, rhs = e.evaluate(known)
    X_dot = e._J @ s.v
    drift = _rate_of_velocities(e) + e._J @ s.v_rate
    arrays = (
        e._J @ s.V,
        X_dot,
        drift,
        derivation.mass_blocks(s.tree),
        derivation.gyroscopic_forces(s.tree, X_dot),
        applied,
    )
    B, X_dot, drift, M, gyroscopic, Gamma = (form.values(x, known) for x in arrays)
    total = M @ (B @ np.linalg.solve(mass, rhs) + drift) + gyroscopic - Gamma
    working = M @ B @ np.linalg.solve(mass, B.T @ total)
    ideal = total - working
    return SplitForces(total, ideal, working, float(X_dot @ ideal), float(X_dot @ working))


def _rate_of_velocities(e: Equations) -> np.ndarray:
    """J_dot v: the accelerations of all bodies at constant speeds v."""
    s = e._state
    return derivative_along(lambda q: derivation.body_motion(s.tree, q).B @ s.v, s.q, configuration_rate(s.tree, s.q, s.v))[1]


def _size(e: Equations, name: str, known: Mapping[str, float]) -> float:
    """N of a constraint: the size of its force, as it is with the working forces acting."""
    size = 0.0
    for _ in range(ROUNDS):
        trial = {**dict.fromkeys((f"N_{n}" for n in e.symbols.sizes), 0.0), **known, f"N_{name}": size}
        mass, rhs = e.evaluate(trial)
        trial |= {x.name: a for x, a in zip(e.symbols.u_dot, np.linalg.solve(mass, rhs), strict=True)}
        found = float(np.linalg.norm([value_of(x, trial) for x in e.multipliers[name]]))
        if abs(found - size) <= 1e-14 * (1 + found):
            return found
        size = found
    raise SolveError(
        f"the size of the force of constraint {name!r} was not found: its working part feeds back on it too strongly"
    )


def joint_reactions(e: Equations) -> dict[str, tuple[sp.Matrix, sp.Matrix]]:
    """By joint the force and the torque with which it acts on what it carries, in world axes, in the symbols u_dot.

    The torque is about the origin of the joint's moving frame; motors, springs and dampers of the joint are part of it, and so are
    constraints by formula on its coordinates. All from Euler's laws of the bodies that the joint carries, on which weights, wrenches, springs between
    points and the `multipliers` of constraints between bodies act. Where constraints depend on each other, those after the first of them
    carry nothing. Raises DescriptionError for tendons around bodies, of which `zw.joint_reactions` gives numbers.
    """
    s, m = e._state, e._scalar_mechanism
    if wrapped := [x.name for x in (*m.tendons, *m.forces) if is_wrapped(m, x)]:
        raise DescriptionError(
            f"tendon or actuator {wrapped[0]!r} runs around a body, and its forces on bodies are too long to be written down; "
            "zw.joint_reactions gives the numbers"
        )
    motion, forces = e._motion, {}
    for name, value in zip(e._embedding.all_names, _all_rows(e), strict=True):
        forces.setdefault(name, []).append(value)
    wrench = inertial_wrench(e) - wrenches_on_bodies(e._scalar_mechanism, motion, s.q, s.v, e._inputs)
    loads = []
    for k, (solid, (R, x)) in enumerate(zip(s.tree.rigid_bodies, motion.poses, strict=True)):
        f, t = wrench[6 * k : 6 * k + 3], R @ wrench[6 * k + 3 : 6 * k + 6]
        loads.append(Load(solid.place.link, x, f, t))
    poses, _ = derivation.poses_with_summed_angles(s.tree, s.q)
    if forces:
        free = free_body_diagram(e._scalar_mechanism, poses, s.v)
        for by_body in constraint_loads(free, forces, e._form.of(e.symbols.time)).values():
            loads += [load.reversed() for load in by_body.values()]
    carried = subtree_loads(s.tree, poses, loads)
    last = {link.name: i for i, link in enumerate(s.tree.links)}
    return {
        joint.name: tuple(e._matrix(x) for x in carried[last[joint.name]])  # type: ignore[misc]
        for joint in e.mechanism.joints
    }


def inertial_wrench(e: Equations) -> np.ndarray:
    """M X_ddot + D M X_dot (6 N,) in the symbols u_dot."""
    s = e._state
    u_dot = np.array([e._form.of(x) for x in e.symbols.u_dot])
    X_ddot = e._J @ (s.V @ u_dot + s.v_rate) + _rate_of_velocities(e)
    return derivation._block_product(s.tree, X_ddot) + derivation.gyroscopic_forces(s.tree, e._J @ s.v)


def _all_rows(e: Equations) -> list[Any]:
    """The multipliers of all rows of constraints; of those that depend on others, 0."""
    lam: list[Any] = [0] * len(e._embedding.all_names)
    for k, value in zip(e._embedding.kept, e._lam, strict=True):
        lam[k] = value
    return lam
