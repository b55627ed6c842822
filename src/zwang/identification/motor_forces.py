"""The forces that the motors must exert for a motion, with all forces of the mechanism and with its friction.

    tau = M(q) a + h(q, v) - passive forces + f sign(v) + sum_t f_t J_t^T sign(J_t v) + mu N sign(v),

with the dry friction f of joints and f_t of tendons with the Jacobians J_t, and the Coulomb friction mu N of
joints with the loads N of their bearings. Friction is that of sliding; at rest, v = 0, it is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from zwang.api.compilation.cache_key import IdentityKey
from zwang.api.compilation.compiled import compile_function
from zwang.compiler.derivatives.differentiate import jacobian
from zwang.constraint.bearings import BearingState, ReleasedMechanism, released_mechanism
from zwang.constraint.coulomb_friction import friction_laws
from zwang.dynamics.crba import crba_of
from zwang.dynamics.generalised_forces import passive_forces_of
from zwang.dynamics.rnea import bias_forces_of, rnea_of
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.tendon_length import tendon_length
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import is_zero, sign

MotorForces = Any
"""A compiled function of q, v, a (..., n) with the results tau (..., nv) and J (..., 3 nv nv)."""


def motor_forces(mechanism: Mechanism, q: Any, v: Any, a: Any) -> np.ndarray:
    """Generalised forces tau (nv,) [N m, N] of the motors for the accelerations a, over the generic scalar.

    q, v, a (nv,): of a mechanism with revolute and prismatic joints, and no constraints besides Coulomb
    friction of joints.
    """
    kinematics = Kinematics(mechanism.tree, q, v)
    tau = rnea_of(kinematics, a) - passive_forces_of(mechanism, kinematics)
    if has_dry_friction(mechanism):
        for joint in mechanism.joints:
            if not is_zero(joint.joint.friction):
                tau[joint.v] = tau[joint.v] + joint.joint.friction * sign(v[joint.v.start])
        for tendon in mechanism.tendons:
            if not is_zero(tendon.friction):
                moment = tendon_length(mechanism, tendon, kinematics)[1]
                tau = tau + tendon.friction * sign(moment @ v) * moment
        released = released_mechanism(mechanism)
        if released is not None:
            tau = tau + sum(_load_friction(released, q, v, a))
    return tau


def _load_friction(released: ReleasedMechanism, q: Any, v: Any, a: Any) -> Iterator[np.ndarray]:
    """The force mu N sign(v) (nv,) against the Coulomb friction of each joint that has it."""
    m, kinematics = released.mechanism, released.kinematics(q, v)
    bias = bias_forces_of(kinematics) - passive_forces_of(m, kinematics)
    state = BearingState(released, crba_of(kinematics), bias, np.zeros((0, m.nv)))
    laws = friction_laws(released.original, q, v)
    for law, T, u, mu in zip(laws.laws, laws.T, laws.speeds, laws.kinetic, strict=True):
        yield mu * state.load(law, a, ()) * sign(u) * T


def has_dry_friction(mechanism: Mechanism) -> bool:
    """Whether the options of a mechanism let the friction of its joints and tendons act."""
    return not {"frictionloss", "constraint"} & set(mechanism.options.disabled)


def compiled_motor_forces(mechanism: Mechanism) -> MotorForces:
    """`motor_forces` of a mechanism without symbols as machine code, with its Jacobians by q, v and a, one
    after the other; kept for the mechanisms used last.
    """
    return _compiled(IdentityKey(mechanism))


@lru_cache(maxsize=8)
def _compiled(same: IdentityKey) -> MotorForces:
    m = same.mechanism

    def forces(q: Any, v: Any, a: Any) -> tuple[np.ndarray, np.ndarray]:
        tau = motor_forces(m, q, v, a)
        return tau, np.concatenate([jacobian(tau, x).ravel() for x in (q, v, a)])

    return compile_function(forces, {"q": m.nq, "v": m.nv, "a": m.nv})
