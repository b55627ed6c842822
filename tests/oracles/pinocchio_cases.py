"""Conversion of Pinocchio's cases to the conventions of zwang: joints by name, quaternions (w, x, y, z), and
the linear velocity of a base in world axes.

Pinocchio's generalised velocities v_pin and those of zwang are related by v = T(q) v_pin. T is a permutation
of joints, with the rotation R of a floating base in the block of its linear part. Hence
    v = T v_pin,   a = T a_pin + drift,   tau_pin = T^T tau,
with drift = R (w x v_linear) in the linear part of a base.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import zwang as zw
from tests.cases import case
from zwang.mechanism.joints import Fixed
from zwang.mechanism.mechanism import Mechanism

CASES = ("F_anymal_c", "F_double_pendulum", "F_panda", "F_solo12", "F_ur5", "F_xarm7")


@cache
def loaded(name: str) -> PinocchioCase:
    """The case of that name, with its loaded mechanism."""
    return PinocchioCase(case("robot_dynamics", name))


class PinocchioCase:
    """A robot's mechanism, without the damping that Pinocchio ignores, and its reference states."""

    def __init__(self, data: dict[str, Any]):
        self.data = data
        self.parameters = data["parameters"]
        free = self.parameters["free_flyer"]
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = Path(folder, "robot.urdf")
            path.write_text(self.parameters["urdf"])
            mechanism = zw.load(path, base="free" if free else "fixed")
        self.mechanism = without_grounded_mass(mechanism).replace(forces=(), home=None)

    @cached_property
    def slots(self) -> list[tuple[Any, slice, slice]]:
        """For each of Pinocchio's joints in its order: zwang's joint, and Pinocchio's ranges in q and v."""
        found, iq, iv = [], 0, 0
        for name in self.parameters["joint_names"]:
            joint = self.mechanism.joint(name)
            nq, nv = joint.q.stop - joint.q.start, joint.v.stop - joint.v.start
            found.append((joint, slice(iq, iq + nq), slice(iv, iv + nv)))
            iq, iv = iq + nq, iv + nv
        assert (iq, iv) == (self.parameters["nq"], self.parameters["nv"])
        return found

    def state(self, reference: dict[str, Any]) -> State:
        """One of the case's reference states, in both conventions."""
        return State(self, reference)

    @property
    def states(self) -> list[State]:
        return [self.state(reference) for reference in self.data["reference"]]


class State:
    """One state: q, v, tau, a of zwang from those of Pinocchio, and the inverse transformation of results."""

    def __init__(self, of: PinocchioCase, reference: dict[str, Any]):
        self.of, self.reference = of, reference
        m = of.mechanism
        q_pin, v_pin, a_pin = (np.array(reference[name]) for name in "qva")
        self.q, self.T, self.drift = np.zeros(m.nq), np.zeros((m.nv, m.nv)), np.zeros(m.nv)
        for joint, iq, iv in of.slots:
            self.q[joint.q] = q_pin[iq]
            R = np.eye(joint.v.stop - joint.v.start)
            if joint.kind == "free":
                x, y, z, w = q_pin[iq][3:]
                self.q[joint.q][3:] = w, x, y, z
                R[:3, :3] = rotation_of(w, x, y, z)
                linear, angular = np.split(v_pin[iv], 2)
                self.drift[joint.v][:3] = R[:3, :3] @ np.cross(angular, linear)
            self.T[joint.v, iv] = R
        self.v = self.T @ v_pin
        self.a = self.T @ a_pin + self.drift
        self.tau = self.T @ np.array(reference["tau"])  # T is orthogonal: its inverse is its transpose

    def forces(self, tau: np.ndarray) -> np.ndarray:
        """Generalised forces of zwang in the convention of Pinocchio."""
        return self.T.T @ tau

    def accelerations(self, a: np.ndarray) -> np.ndarray:
        """Accelerations of zwang in the convention of Pinocchio."""
        return self.T.T @ (a - self.drift)

    def matrix(self, H: np.ndarray) -> np.ndarray:
        """A mass matrix of zwang in the convention of Pinocchio."""
        return self.T.T @ H @ self.T

    def columns(self, J: np.ndarray) -> np.ndarray:
        """A Jacobian of zwang in the convention of Pinocchio."""
        return J @ self.T


def rotation_of(w: float, x: float, y: float, z: float) -> np.ndarray:
    """The rotation matrix of a unit quaternion."""
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def without_grounded_mass(mechanism: Mechanism) -> Mechanism:
    """The mechanism with massless bodies where they are fixed to the world: Pinocchio does not count their
    mass in the centre of mass and the potential energy.
    """
    grounded = {"world"}
    bodies = []
    for body in mechanism.bodies:
        if body.parent in grounded and isinstance(body.joint, Fixed):
            grounded.add(body.name)
            body = replace(body, mass=0, com=(0, 0, 0), inertia=(0, 0, 0))
        bodies.append(body)
    return mechanism.replace(bodies=bodies)


def relative_error(found: Any, expected: Any) -> float:
    """The largest difference, relative to the largest expected number (or 1 if all are zero)."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    assert found.shape == expected.shape
    scale = np.abs(expected).max()
    return float(np.abs(found - expected).max() / (scale if scale > 0 else 1.0))
