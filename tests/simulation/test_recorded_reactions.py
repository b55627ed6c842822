"""Recorded joint reactions: Newton's and Euler's laws of every free body, and the reference on floats."""

from dataclasses import replace

import numpy as np
import pytest

import zwang as zw
from zwang.errors import DescriptionError
from zwang.mechanism.samples import double_pendulum, four_bar

G, PUSHED = np.array([0, 0, -9.81]), (0, 0, 0.2)


def walker():
    """A free trunk with two legs of two joints, on a floor, with a motor, a damper and joint limits."""
    touch = zw.Surface(friction=(0.8, 0.01, 0.001))
    legs = []
    for side, y in (("left", 0.2), ("right", -0.2)):
        legs += [
            zw.Body(
                f"{side} thigh",
                zw.Revolute(f"{side} hip", axis=(0, 1, 0.1)),
                "trunk",
                (0, y, -0.1),
                mass=1.0,
                com=(0, 0.01, -0.2),
                inertia=(0.02, 0.021, 0.003),
            ),
            zw.Body(
                f"{side} shank",
                zw.Revolute(f"{side} knee", axis=(0, 1, 0), limits=(-0.1, 0.4), friction=0.1),
                f"{side} thigh",
                (0, 0, -0.4),
                mass=0.7,
                com=(0, 0, -0.15),
                inertia=(0.01, 0.011, 0.002),
                geometry=[zw.Sphere(0.08, position=(0, 0, -0.35), surface=touch)],
            ),
        ]
    trunk = zw.Body("trunk", zw.Free("base"), mass=4.0, com=(0.02, 0, 0.05), inertia=(0.1, 0.12, 0.08))
    push = zw.Wrench("trunk", force=(1, 0, 0), point=PUSHED, input="push")
    return zw.Mechanism(
        "walker",
        [trunk, *legs],
        forces=[zw.Motor("drive", "left hip"), zw.Damper("right hip", 0.2), push],
        geometry=[zw.Plane(surface=touch)],
    )


def walking(compiled=True, **more):
    """The walker's recording: it falls 1 cm and lands on both feet."""
    m = walker()
    q = np.array([0, 0, 0.935, 1, 0, 0, 0, 0.1, 0.2, -0.1, 0.3])
    record = {"reactions": True, "forces": True, "every": 10}
    options = {"duration": 0.1, "step": 0.001, "record": record, "progress": False} | more
    run = zw.simulate(m, q, control={"drive": 1.5, "push": 10.0}, compiled=compiled, **options)
    return m, run


def newton_euler(m, run, k, applied=()):
    """For each body the residuals of Newton's and Euler's law at sample k, from Jacobians alone.

    applied: (body, point in the body, force) of applied forces.
    """
    at = run.isel(world=0, time=k)
    q, v = at.q.values, at.v.values
    a = zw.constrained_dynamics(m, q, v, at.tau.values - passive(m, q, v)).acceleration
    children = {body.name: [c for c in m.bodies if c.parent == body.name] for body in m.bodies}
    joint_of = {joint.body: joint.name for joint in m.joints}
    residuals = []
    for body in m.bodies:
        R, p = zw.frame_pose(m, q, body.name)
        c = R @ np.array(body.com)
        J, Jdv = zw.frame_jacobian(m, q, body.name), zw.frame_jacobian_rate(m, q, v, body.name)
        w, alpha = J[3:] @ v, J[3:] @ a + Jdv[3:]
        origin = J[:3] @ a + Jdv[:3]
        I = R @ inertia(body) @ R.T
        force = body.mass * (origin + np.cross(alpha, c) + np.cross(w, np.cross(w, c)) - G)
        torque = I @ alpha + np.cross(w, I @ w)  # about the centre of mass
        wrenches = [(body.name, 1.0)] + [(child.name, -1.0) for child in children[body.name]]
        for other, sign in wrenches:
            reaction = at.sel(joint=joint_of[other])
            f = sign * reaction.reaction_force.values
            force -= f
            arm = zw.frame_pose(m, q, other).p - p - c  # the joints are at the origins of their bodies
            torque -= sign * reaction.reaction_torque.values + np.cross(arm, f)
        for n in range(at.sizes.get("point_force", 0)):
            for name, sign in (
                (at.point_force_body[n].item(), 1.0),
                (at.point_force_other_body[n].item(), -1.0),
            ):
                f = sign * at.force.values[n]
                if name == body.name and f.any():
                    force -= f
                    torque -= np.cross(at.force_position.values[n] - p - c, f)
        for name, point, f in applied:
            if name == body.name:
                force -= f
                torque -= np.cross(R @ point - c, f)
        residuals += [np.abs(force).max(), np.abs(torque).max()]
    return np.array(residuals)


def inertia(body):
    return np.diag(body.inertia) if np.ndim(body.inertia) == 1 else np.array(body.inertia)


def passive(m, q, v):
    """Springs and dampers of the joints, which `tau` of a recording contains."""
    return -zw.inverse_dynamics(m, q, v, np.zeros(m.nv)) + zw.bias_forces(m, q, v)


@pytest.mark.parametrize("compiled", [True, False])
def test_recorded_reactions_obey_newton_and_euler_on_every_body(compiled):
    m, run = walking(compiled, duration=0.1 if compiled else 0.05)
    assert run.reaction_force.dims == ("world", "time", "joint", "axis")
    assert run.joint.values.tolist() == [joint.name for joint in m.joints]
    push = [("trunk", np.array(PUSHED), np.array([10.0, 0, 0]))]
    for k in range(run.sizes["time"]):
        scale = max(1.0, np.abs(run.reaction_force.values[0, k]).max())
        assert newton_euler(m, run, k, push).max() < 1e-10 * scale
    assert run.force.values.any() or not compiled


@pytest.mark.parametrize("build", [four_bar, double_pendulum])
def test_recorded_reactions_are_those_of_joint_reactions(build):
    m = build()
    q, v = zw.assemble(m, m.home or m.neutral, np.linspace(0.5, 1.0, m.nv))
    run = zw.simulate(m, q, v, duration=0.02, step=0.002, record={"reactions": True}, progress=False)
    for k in range(0, 11, 5):
        at = run.isel(world=0, time=k)
        ours = zw.joint_reactions(m, at.q.values, at.v.values, np.zeros(m.nv))
        for name, reaction in ours.joints.items():
            scale = 1e-9 * max(1.0, np.abs(reaction.force).max())
            np.testing.assert_allclose(at.sel(joint=name).reaction_force, reaction.force, atol=scale)
            np.testing.assert_allclose(at.sel(joint=name).reaction_torque, reaction.torque, atol=scale)


def test_reactions_are_derived_after_a_run_for_many_worlds():
    _, run = walking(worlds=4, record=1)
    compiled = zw.derived_quantities(run.isel(world=[0]), "reactions")  # compiled here
    all_worlds = zw.derived_quantities(run, "reactions")
    np.testing.assert_array_equal(all_worlds.reaction_force[:1], compiled.reaction_force)
    python = zw.derived_quantities(run.isel(world=[0], time=[0, 50, 100]), "reactions", compiled=False)
    np.testing.assert_allclose(python.reaction_force, compiled.reaction_force[:, [0, 50, 100]], atol=1e-8)


def test_a_tendon_whose_reactions_are_not_computed_is_refused():
    m = double_pendulum()
    tendon = zw.Tendon("rope", path=("world", "lower"), limits=(0.0, 2.0))
    roped = replace(m, tendons=(tendon,))
    with pytest.raises(DescriptionError, match="rope"):
        zw.simulate(roped, duration=0.01, record={"reactions": True}, progress=False)
