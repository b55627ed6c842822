"""Comparison of two descriptions of one mechanism, whose coordinates may be in another order."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

import zwang as zw
from tests.mechanisms import random_state
from zwang.dynamics.actuators import Inputs, activation_derivatives
from zwang.dynamics.generalised_forces import controlled_forces, passive_forces
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import link_poses, placement_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.applied_forces import activations

TOLERANCE = 1e-12


def close(a: Any, b: Any, what: str, tolerance: float = TOLERANCE) -> None:
    """Equal within the tolerance, relative to the largest entry if that exceeds 1."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    assert a.shape == b.shape, what
    if not a.size:
        return
    error = np.abs(a - b).max()
    assert error <= tolerance * max(1.0, np.abs(a).max()), f"{what}: {error:.3g}"


def orders(old: Mechanism, new: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """For each coordinate and each velocity of `new`, its index in `old`.

    A joint of `old` is in `new` the joint of its name, or those named NAME.PART, in their order.
    """
    q, v = np.full(new.nq, -1), np.full(new.nv, -1)
    joints = {j.name: j for j in old.joints}
    starts = {j.name: [j.q.start, j.v.start] for j in old.joints}
    for joint in new.joints:
        name = joint.name if joint.name in joints else joint.name.rpartition(".")[0]
        iq, iv = starts[name]
        q[joint.q] = np.arange(iq, iq + joint.joint.nq)
        v[joint.v] = np.arange(iv, iv + joint.joint.nv)
        starts[name] = [iq + joint.joint.nq, iv + joint.joint.nv]
    assert sorted(q) == list(range(old.nq)) and sorted(v) == list(range(old.nv))
    return q, v


def assert_same_dynamics(old: Mechanism, new: Mechanism, seed: int = 0, tolerance: float = TOLERANCE) -> None:
    """Mass matrix, bias and passive forces, and the poses of all bodies and frames of `old`."""
    iq, iv = orders(old, new)
    q, v, _, _ = random_state(old, seed)
    M = zw.mass_matrix(old, q)[np.ix_(iv, iv)] if old.nv else np.zeros((0, 0))
    close(M, zw.mass_matrix(new, q[iq]) if old.nv else M, "mass matrix", tolerance)
    if old.nv:
        close(zw.bias_forces(old, q, v)[iv], zw.bias_forces(new, q[iq], v[iv]), "bias forces", tolerance)
    close(passive_forces(old, q, v)[iv], passive_forces(new, q[iq], v[iv]), "passive forces", tolerance)
    ours, theirs = link_poses(old.tree, q), link_poses(new.tree, q[iq])
    for name, placement in old.tree.placements.items():
        if name not in new.tree.placements:
            assert name.endswith(" (wrapped)"), name
            continue
        a, b = placement_pose(ours, placement), placement_pose(theirs, new.tree.placements[name])
        close(np.column_stack(a), np.column_stack(b), f"pose of {name}", tolerance)


def assert_same_actuators(
    old: Mechanism, new: Mechanism, seed: int = 0, tolerance: float = TOLERANCE
) -> None:
    """The forces of all actuators, and the derivatives of their activations."""
    assert old.inputs == new.inputs and activations(old) == activations(new)
    iq, iv = orders(old, new)
    q, v, _, _ = random_state(old, seed)
    rng = np.random.default_rng(seed)
    control = dict(zip(old.inputs, rng.normal(size=len(old.inputs)), strict=True))
    activation = dict(zip(activations(old), rng.normal(size=len(activations(old))), strict=True))
    ours = controlled_forces(old, q, v, control, activation)[iv]
    theirs = controlled_forces(new, q[iq], v[iv], control, activation)
    close(ours, theirs, "actuator forces", tolerance)
    if activation:
        states = (old, q, v), (new, q[iq], v[iv])
        a, b = (
            activation_derivatives(
                m, Kinematics(m.tree, *at), Inputs(control, activation, 0, m.options.timestep)
            )
            for m, *at in states
        )
        close([a[n] for n in activation], [b[n] for n in activation], "activations", tolerance)


def limits_of(mechanism: Mechanism) -> dict[str, Any]:
    """Limits, friction, armature and ranges of the joints with one coordinate, by joint."""
    return {
        j.name: (
            j.joint.limits, j.joint.actuator_range, j.joint.friction, j.joint.armature,
            j.joint.limit_softness if j.joint.limits else None,
            j.joint.friction_softness if j.joint.friction else None,
        )
        for j in mechanism.joints if j.joint.nq == 1
    }  # fmt: skip


def assert_same_limits(old: Mechanism, new: Mechanism) -> None:
    """The limits of the joints with one coordinate, and their softness."""
    theirs = limits_of(new)
    for name, ours in limits_of(old).items():
        for a, b in zip(ours, theirs.get(name, ours), strict=True):
            if isinstance(a, tuple) and b is not None:
                close(a, b, f"limits of {name}")
            else:
                assert a == b or a == (-np.inf, np.inf), f"{name}: {a} and {b}"


def loaded(path: Any, **settings: Any) -> Mechanism:
    """The mechanism of a file, without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zw.load(path, **settings)


def rewritten(m: Mechanism, folder: Path, **settings: Any) -> Mechanism:
    """The mechanism that zwang reads from the file that it writes."""
    path = folder / "written.xml"
    zw.write_mjcf(m, path, **settings)
    return loaded(path)


def assert_equal(m: Mechanism, n: Mechanism, seed: int = 0) -> None:
    """Equal dynamics, actuators and limits."""
    assert_same_dynamics(m, n, seed)
    assert_same_actuators(m, n, seed)
    assert_same_limits(m, n)
