"""Pairs of shapes, link by link: all pairs whose bounding spheres overlap are visited in order,
and the contacts are MuJoCo's.
"""

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.collision import StoredPlacements, candidate_pairs, over_near_pairs, pair_groups
from zwang.collision.link_pairs import has_link_pairs
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.kinematics.kinematics import Kinematics

LINKS, SHAPES = 6, 4


def chain(rng):
    """The MJCF of a floating chain whose links have several spheres each, and its radii (links, shapes)."""
    radii, bodies, ends = rng.uniform(0.02, 0.06, (LINKS, SHAPES)), "", ""
    for k, own in enumerate(radii):
        joint = "<freejoint/>" if k == 0 else f"<joint type='{('ball', 'hinge')[k % 2]}' damping='1'/>"
        places = rng.uniform(-0.05, 0.05, (SHAPES, 3))
        shapes = "".join(
            f"<geom name='g{k}_{i}' type='sphere' size='{r}' pos='{x} {y} {z}' condim='3'/>"
            for i, (r, (x, y, z)) in enumerate(zip(own, places, strict=True))
        )
        bodies += f"<body name='b{k}' pos='{0.12 * (k > 0)} 0 0'>{joint}{shapes}"
        ends += "</body>"
    option = "<option timestep='0.002' tolerance='0' ls_tolerance='1e-10'/>"
    return f"<mujoco>{option}<worldbody>{bodies}{ends}</worldbody></mujoco>", radii


def random_state(mechanism, rng):
    """A random configuration and velocity."""
    step = rng.normal(size=mechanism.nv)
    return zw.integrate_configuration(mechanism, mechanism.neutral, step, 1.0), rng.normal(size=mechanism.nv)


@pytest.mark.parametrize("seed", range(4))
def test_all_pairs_whose_spheres_overlap_are_visited_in_order(seed):
    rng = np.random.default_rng(seed)
    text, _ = chain(rng)
    mechanism, model = read_mjcf("chain.xml", strict=False, text=text), mujoco.MjModel.from_xml_string(text)
    pairs, data = candidate_pairs(mechanism), mujoco.MjData(model)
    [group] = pair_groups(pairs, [0] * len(pairs))
    assert has_link_pairs(group)
    visited = 0
    for _ in range(20):
        data.qpos[:], _ = random_state(mechanism, rng)
        mujoco.mj_kinematics(model, data)
        stored = StoredPlacements(pairs, Kinematics(mechanism.tree, data.qpos).poses)
        found = over_near_pairs(group, stored, lambda number, found: [*found, number], [])
        names = [tuple(shape.name for shape in (pair.a, pair.b)) for pair in group.pairs]
        both = [tuple(model.geom(name).id for name in own) for own in names]
        gaps = [
            np.linalg.norm(data.geom_xpos[a] - data.geom_xpos[b])
            - model.geom_size[a, 0]
            - model.geom_size[b, 0]
            for a, b in both
        ]
        overlapping = [n for n, gap in enumerate(gaps) if gap < 0]
        assert list(found) == sorted(set(found)) and set(overlapping) <= set(found)
        visited += len(found)
    assert visited < 20 * len(group) / 2


@pytest.mark.parametrize("options", ["", "noslip_iterations='4' noslip_tolerance='0' cone='elliptic'"])
def test_steps_are_those_of_mujoco_and_alike_in_any_number_of_worlds(options):
    rng = np.random.default_rng(9)
    text = chain(rng)[0].replace("<option ", f"<option {options} ")
    model = mujoco.MjModel.from_xml_string(text)
    mechanism, data = read_mjcf("chain.xml", strict=False, text=text), mujoco.MjData(model)
    q, v = (np.array(x) for x in zip(*(random_state(mechanism, rng) for _ in range(20)), strict=True))
    force = np.zeros((len(q), mechanism.nv))
    fast, contacts = zw.compile(mechanism, threads=1), 0
    after = fast.rollout(q, v, force, steps=2, every=1, integrator="euler")
    for k in range(len(q)):
        alone = fast.rollout(q[k], v[k], force[k], steps=2, every=1, integrator="euler")
        assert np.array_equal(alone.v, after.v[k])
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = q[k], v[k]
        mujoco.mj_step(model, data)
        contacts += data.ncon
        assert np.abs(after.v[k, 0] - data.qvel).max() < 1e-7 * (1 + np.abs(data.qvel).max())
    assert contacts > 40
