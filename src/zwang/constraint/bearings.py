"""The loads of the bearings of joints with Coulomb friction: the reaction force of the joint normal to its
axis, and along it.

The reaction is found by releasing the joint. In a second mechanism, the released one, each such joint is
followed by further joints, which stand still: two prismatic and two revolute ones along and about axes normal
to its own, and for a collar a prismatic one along its own. The reaction in the direction of such a joint is
the generalised force that keeps it at rest,

    r = M_ra a + h_r - tau_r - J_r^T f,

with the rows r of the mass matrix, of the bias forces, of the applied forces and of the constraint forces of
the released mechanism. Source: Featherstone, Rigid Body Dynamics Algorithms (2008), Sec. 3.2 and 8.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import norm
from zwang.algebra.rotations import perpendicular_axes
from zwang.constraint.inverse_weights import InverseWeights
from zwang.constraint.rows import Rows
from zwang.dynamics.crba import crba_of
from zwang.dynamics.rnea import bias_forces_of
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.bodies import Body
from zwang.mechanism.constraints import CoulombFriction, NonIdeal
from zwang.mechanism.joints import Joint, Prismatic, Revolute
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import absolute, divide

NAME = "{}: bearing {}"  # of the added joints; no name of a file contains the joint's name and this


@dataclass(frozen=True)
class ReleasedMechanism:
    """A mechanism whose joints with Coulomb friction have been released, and the laws of these joints.

    mechanism: the released mechanism. original: the mechanism itself.
    """

    original: Mechanism
    mechanism: Mechanism
    laws: tuple[CoulombFriction, ...]

    @cached_property
    def columns(self) -> list[int]:
        """The index in the released velocities of each velocity of the original mechanism."""
        return [k for j in self.original.joints for k in _indices(self.mechanism.joint(j.name).v)]

    def configuration(self, q: Any) -> np.ndarray:
        """The released configuration (nq,) of the configuration q, in which the added joints are at 0."""
        slots = [k for j in self.original.joints for k in _indices(self.mechanism.joint(j.name).q)]
        return _scattered(q, slots, self.mechanism.nq)

    def velocities(self, v: Any) -> np.ndarray:
        """The released velocities, or forces (nv,), in which those of the added joints are 0."""
        return _scattered(v, self.columns, self.mechanism.nv)

    def kinematics(self, q: Any, v: Any) -> Kinematics:
        """The kinematics of the released mechanism at (q, v) of the original one."""
        return Kinematics(self.mechanism.tree, self.configuration(q), self.velocities(v))

    def inverse_weights(self, weights: InverseWeights) -> InverseWeights:
        """The inverse weights of the original mechanism, for the released velocities."""
        return weights._replace(speeds=tuple(self.velocities(weights.speeds)))

    def reactions_of(self, law: CoulombFriction) -> list[int]:
        """The released velocities of the joint of a law: two translations and two rotations normal to its
        axis, and with a collar the translation along it.
        """
        count = 5 if law.has_collar else 4
        return [self.mechanism.joint(NAME.format(law.joint, k)).v.start for k in range(count)]


class BearingLoads(NamedTuple):
    """The released mechanism of the joints with Coulomb friction, and its applied forces (nv,) [N m, N]."""

    released: ReleasedMechanism | None
    applied: np.ndarray


class BearingState(NamedTuple):
    """What the bearing loads need in one state, besides the acceleration and the forces of the rows.

    M (nv, nv): the mass matrix and h - tau (nv,): bias forces minus applied forces of the released
    mechanism. J (n, nv): the released Jacobian of the rows.
    """

    released: ReleasedMechanism
    M: np.ndarray
    bias_minus_applied: np.ndarray
    J: np.ndarray

    def load(self, law: CoulombFriction, a: Any, f: Any) -> Any:
        """The friction torque [N m] or force [N] of a joint for mu = 1, for accelerations a (nv,) and forces
        f (n,) of the rows.

        F1, F2: the reaction force along the axes t1, t2 normal to the joint's axis n = t1 x t2, and M1, M2
        the moment about them. Bearings at +-L/2 n carry G+ = (F + D) / 2 and G- = (F - D) / 2, with
        D = (2 / L) M x n.
        """
        columns = self.released.columns
        reaction = []
        for k in self.released.reactions_of(law):
            inertial = sum((self.M[k, i] * x for i, x in zip(columns, a, strict=True)), start=0)
            of_rows = sum((J[k] * x for J, x in zip(self.J, f, strict=True)), start=0)
            reaction.append(inertial + self.bias_minus_applied[k] - of_rows)
        F, M = np.array(reaction[:2]), reaction[2:4]
        if law.bearing_distance is None:
            radial = norm(F)
        else:
            D = np.array([M[1], -M[0]]) * divide(2, law.bearing_distance)
            radial = (norm(F + D) + norm(F - D)) / 2
        if law.radius is None:
            return radial
        axial = law.collar_radius * absolute(reaction[4]) if law.has_collar else 0
        return law.radius * radial + axial


def released_mechanism(mechanism: Mechanism) -> ReleasedMechanism | None:
    """The released mechanism; None if no joint has Coulomb friction."""
    laws = tuple(c for c in mechanism.constraints if isinstance(c, CoulombFriction) and c.joint is not None)
    if not laws:
        return None
    collars = {law.joint: law.has_collar for law in laws}
    changed = mechanism.replace(
        bodies=[_released_body(body, collars) for body in mechanism.bodies],
        constraints=[c for c in mechanism.constraints if not isinstance(c, CoulombFriction | NonIdeal)],
        home=None,
        keyframes=(),
    )
    return ReleasedMechanism(mechanism, changed, laws)


def bearing_state(
    released: ReleasedMechanism, kinematics: Kinematics, applied: Any, rows: Rows
) -> BearingState:
    """The state of the bearings; kinematics, rows: of the released mechanism. applied (nv,): its applied
    forces.
    """
    bias = bias_forces_of(kinematics)
    return BearingState(released, crba_of(kinematics), bias - np.asarray(applied), rows.J)


def _released_body(body: Body, collars: dict[str | None, bool]) -> Body:
    """The body with further joints after each of its joints that has Coulomb friction."""
    if not any(joint.name in collars for joint in body.joints):
        return body
    joints: list[Joint] = []
    for joint in body.joints:
        joints.append(joint)
        if joint.name in collars:
            first, second = perpendicular_axes(joint.axis)
            added = [(Prismatic, first), (Prismatic, second), (Revolute, first), (Revolute, second)]
            added += [(Prismatic, joint.axis)] if collars[joint.name] else []
            joints += [
                kind(NAME.format(joint.name, k), axis=axis, position=joint.position)
                for k, (kind, axis) in enumerate(added)
            ]
    return replace(body, joint=tuple(joints))


def _indices(part: slice) -> range:
    return range(part.start, part.stop)


def _scattered(values: Any, slots: Sequence[int], size: int) -> np.ndarray:
    """An array of zeros with the values at the given indices."""
    found: list[Any] = [0] * size
    for slot, value in zip(slots, values, strict=True):
        found[slot] = value
    return np.array(found)
