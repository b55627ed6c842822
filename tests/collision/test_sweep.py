"""The sweep of many shapes finds every pair whose bounding spheres overlap, in order, and steps with it are
those of MuJoCo and the same for any number of worlds.
"""

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.collision import (
    StoredPlacements,
    candidate_pairs,
    over_near_pairs,
    pair_groups,
)
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.kinematics.kinematics import Kinematics
from zwang.solver.warm_start import LISTED_PER_VELOCITY

COUNT = 52


def model_of(radii, positions, extra=""):
    """The MJCF of free spheres on a floor."""
    bodies = "".join(
        f"<body name='b{k}' pos='{x} {y} {z}'><freejoint/><geom type='sphere' size='{r}'/></body>"
        for k, (r, (x, y, z)) in enumerate(zip(radii, positions, strict=True))
    )
    return (
        "<mujoco><option timestep='0.005' tolerance='0' ls_tolerance='1e-10'/><worldbody>"
        f"<geom type='plane' size='0 0 1'/>{bodies}</worldbody>{extra}</mujoco>"
    )


def heap(rng):
    """Radii and positions of a heap in which neighbours touch."""
    k = np.arange(COUNT)
    positions = np.stack([k % 4, k // 4 % 4, k // 16], axis=1) * 0.18 + [0, 0, 0.1]
    return rng.uniform(0.09, 0.1, COUNT), positions + 0.004 * rng.normal(size=(COUNT, 3))


@pytest.mark.parametrize("spread", [0.0, 0.2, 3.0, 50.0])
def test_the_sweep_finds_all_pairs_in_order(spread: float) -> None:
    rng = np.random.default_rng(1)
    radii, positions = heap(rng)
    radii[7] = 0.3
    excluded = "<contact><exclude body1='b3' body2='b4'/><exclude body1='b0' body2='b51'/></contact>"
    mechanism = read_mjcf("heap.xml", strict=False, text=model_of(radii, positions, excluded))
    pairs = candidate_pairs(mechanism)
    [group] = [g for g in pair_groups(pairs, [0] * len(pairs)) if "plane" not in g.first.kinds]
    assert len(group) == COUNT * (COUNT - 1) // 2 - 2
    q = np.array(mechanism.home or mechanism.neutral, float).reshape(COUNT, 7)
    q[:, :3] = positions + spread * rng.normal(size=(COUNT, 3))
    stored = StoredPlacements(pairs, Kinematics(mechanism.tree, q.ravel()).poses)
    found = over_near_pairs(group, stored, lambda number, found: [*found, number], [])
    p = q[:, :3]
    bodies = [[int(shape.body[1:]) for shape in (pair.a, pair.b)] for pair in group.pairs]
    overlapping = [n for n, (i, j) in enumerate(bodies) if np.linalg.norm(p[i] - p[j]) < radii[i] + radii[j]]
    assert found == sorted(set(found)) and set(overlapping) <= set(found)
    assert len(found) < len(group) / 2 and (spread > 0.1 or len(overlapping) > COUNT)


def test_steps_of_a_heap_are_those_of_mujoco_and_alike_in_any_number_of_worlds() -> None:
    rng = np.random.default_rng(2)
    text = model_of(*heap(rng))
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.iterations, model.opt.ls_iterations = 200, 100
    mechanism = read_mjcf("heap.xml", strict=False, text=text)
    pairs = candidate_pairs(mechanism)
    assert len(pairs) > 2 * LISTED_PER_VELOCITY * mechanism.nv  # the row status is kept as a list
    fast, worlds, steps = zw.compile(mechanism, threads=1, cache=False), 3, 20
    q = np.tile(model.qpos0, (worlds, 1))
    v = 0.2 * rng.normal(size=(worlds, model.nv))
    force = np.zeros((worlds, model.nv))
    run = fast.rollout(q, v, force, steps=steps, every=1, integrator="euler")
    alone = fast.rollout(q[1], v[1], force[1], steps=steps, every=1, integrator="euler")
    assert np.array_equal(run.q[1], alone.q) and np.array_equal(run.v[1], alone.v)
    data = mujoco.MjData(model)
    for k in range(worlds):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = q[k], v[k]
        for n in range(3):
            mujoco.mj_step(model, data)
            assert data.ncon > COUNT
            assert np.abs(run.v[k, n] - data.qvel).max() < 1e-7 * (1 + np.abs(data.qvel).max())
