"""Rollouts of ten thousand steps of stacks, limits and fast chains: finite states, and bodies at rest stay at
rest.
"""

import numpy as np
import pytest

import zwang as zw

STEPS = 10_000


def final_state(mechanism, v0, step=0.002, worlds=1):
    """q and v after ten thousand steps."""
    v0 = np.broadcast_to(v0, (worlds, mechanism.nv))
    home = np.array(mechanism.home or mechanism.neutral, float)
    fast = zw.compile(mechanism)
    end = fast.rollout(
        np.tile(home, (worlds, 1)), v0, np.zeros((worlds, mechanism.nv)), steps=STEPS, every=STEPS, step=step
    )
    return end.q[:, -1], end.v[:, -1]


@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
def test_a_stack_of_balls_stays_at_rest(hard):
    surface = zw.Surface(hard=hard)
    bodies = [
        zw.Body(f"ball {k}", position=(0, 0, 0.1 + 0.2 * k), joint=zw.Prismatic(f"z{k}"), mass=1.0 + k,
                geometry=[zw.Sphere(radius=0.1, surface=surface)])
        for k in range(4)
    ]  # fmt: skip
    mechanism = zw.Mechanism(bodies=bodies, geometry=[zw.Plane(surface=surface)])
    q, v = final_state(mechanism, 0.0)
    assert np.abs(v).max() < 1e-9
    assert np.abs(q).max() < (1e-9 if hard else 0.02)


def test_a_stack_of_hard_boxes_stays_at_rest():
    surface = zw.Surface(hard=True)
    bodies = [
        zw.Body(f"box {k}", position=(0, 0, 0.1 + 0.2 * k), joint=zw.Free(f"free {k}"), mass=1.0 + k,
                inertia=(0.01,) * 3, geometry=[zw.Box(x=0.3 - 0.05 * k, y=0.3, z=0.2, surface=surface)])
        for k in range(2)
    ]  # fmt: skip
    mechanism = zw.Mechanism(bodies=bodies, geometry=[zw.Plane(surface=surface)])
    q, v = final_state(mechanism, 0.0)
    assert np.abs(v).max() < 1e-10 and np.abs(q - mechanism.neutral).max() < 1e-10


@pytest.mark.parametrize("softness", [zw.Softness(), None], ids=["soft", "hard"])
def test_a_joint_with_equal_lower_and_upper_limits_does_not_move(softness):
    joint = zw.Revolute("hinge", axis=(0, 1, 0), limits=(0.0, 0.0), limit_softness=softness)
    body = zw.Body("arm", joint=joint, mass=1.0, com=(0.3, 0, 0), inertia=(0.01, 0.01, 0.01))
    q, v = final_state(zw.Mechanism(bodies=[body]), 0.0)
    assert np.abs(v).max() < 1e-9
    assert np.abs(q).max() < (1e-12 if softness is None else 0.02)


def test_a_fast_chain_stays_within_its_limits():
    links = [
        zw.Body(f"link {k}", parent=f"link {k - 1}" if k else "world", position=(0, 0, -0.2 if k else 0),
                joint=zw.Revolute(f"j{k}", axis=(0, 1, 0), limits=(-0.5, 0.5), friction=0.02),
                mass=0.3, com=(0, 0, -0.1), inertia=(0.001, 0.001, 0.0002))
        for k in range(8)
    ]  # fmt: skip
    q, v = final_state(
        zw.Mechanism(bodies=links), 12 * np.random.default_rng(3).normal(size=(8, 8)), worlds=8
    )
    assert np.isfinite(q).all() and np.isfinite(v).all()
    assert np.abs(q[:, 1:]).max() < 0.7
