"""Pairs of several kinds of shapes in one loop: the contact points are those of each pair alone."""

from dataclasses import replace
from functools import cache

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.collision import (
    FAR,
    StoredPlacements,
    bounding_volumes_overlap,
    candidate_pairs,
    contact_points,
    contact_points_between,
    pair_groups,
    passes_broad_phase,
)
from zwang.collision.shapes import CONVEX
from zwang.compiler.pipeline import trace_and_optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.kinematics.kinematics import Kinematics
from zwang.scalar import empty, fori_loop, where

SHAPES = {
    "sphere": ".11",
    "capsule": ".06 .12",
    "ellipsoid": ".08 .12 .16",
    "cylinder": ".09 .11",
    "box": ".08 .1 .12",
}
NUMBERS = 7  # of a contact point: distance, position, normal
WORLDS = 14
FEW = ("mesh0", "ellipsoid0", "capsule0", "cylinder0")  # with a box: of all numbers of points


def scene(names=None):
    """Two floating shapes of each kind, of different sizes, or those of these names; and a box that is fixed
    to the world.
    """
    rng, assets, bodies = np.random.default_rng(1), "", ""
    for k in range(2):
        corners = rng.normal(size=(12, 3)) * 0.1
        assets += f'<mesh name="m{k}" vertex="{" ".join(map(str, corners.ravel()))}"/>'
        shapes = {f"mesh{k}": f'type="mesh" mesh="m{k}" margin=".02"'}
        for kind, sizes in SHAPES.items():
            own = " ".join(str(float(x) * (1 + 0.2 * k)) for x in sizes.split())
            shapes[f"{kind}{k}"] = f'type="{kind}" size="{own}"'
        for name, shape in shapes.items():
            if names is None or name in names:
                bodies += f'<body><freejoint/><geom name="{name}" {shape}/></body>'
    ground = '<geom name="fixed" type="box" size=".1 .1 .1"/>'
    return f"<mujoco><asset>{assets}</asset><worldbody>{ground}{bodies}</worldbody></mujoco>"


@cache
def shapes(names=None):
    return read_mjcf("shapes.xml", strict=False, text=scene(names))


@pytest.fixture
def mechanism():
    return shapes()


def states(mechanism):
    """Configurations in which many of the shapes overlap, some deeply."""
    rng = np.random.default_rng(2)
    for _ in range(WORLDS):
        d = rng.normal(size=(mechanism.nv // 6, 6)) * [0.14, 0.14, 0.14, 2, 2, 2]
        yield zw.integrate_configuration(mechanism, mechanism.neutral, d.ravel(), 1.0)


def iterated_groups(mechanism):
    pairs = [pair for pair in candidate_pairs(mechanism) if pair.kinds in CONVEX]
    return pairs, pair_groups(pairs, [0] * len(pairs))


def test_one_loop_for_each_number_of_points(mechanism):
    pairs, groups = iterated_groups(mechanism)
    assert {group.first.count for group in groups} == {1, 2, 4} and len(groups) == 3
    assert len({pair.kinds for pair in pairs}) == 14
    assert all(len({pair.kinds for pair in group.pairs}) > 1 for group in groups)


@cache
def points_of_group(number):
    """The program of the contact points of all pairs of a group, and for each world and pair those of the
    pair alone, on floats, (points, NUMBERS), or None if the broad phase excludes it.
    """
    mechanism = shapes()
    pairs, groups = iterated_groups(mechanism)
    group = groups[number]
    count = group.first.count

    def function(q):
        stored = StoredPlacements(pairs, Kinematics(mechanism.tree, q).poses)

        def visit(k, found):
            pair, shapes = group.pair(k), group.placed(k, stored)
            near = where(bounding_volumes_overlap(pair, *shapes), 1.0, 0.0)
            for i, point in enumerate(contact_points_between(pair, *shapes)):
                for c, x in enumerate([point.distance, *point.position, *point.frame[0]]):
                    found = found.set((k, i * NUMBERS + c), x * 1.0)
            return found.set((k, NUMBERS * count), near)

        return fori_loop(0, len(group), visit, empty((len(group), NUMBERS * count + 1)), unroll=False)

    def alone(pair, poses):
        if not passes_broad_phase(pair, poses):
            return None
        points = contact_points(pair, poses)
        return np.array([[x.distance, *x.position, *x.frame[0]] for x in points], float)

    poses = [Kinematics(mechanism.tree, q).poses for q in states(mechanism)]
    program = trace_and_optimise(function, {"q": (mechanism.nq,)})
    return program, [[alone(pair, world) for pair in group.pairs] for world in poses]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_contact_points_are_those_of_each_pair_alone(mechanism, number, dtype):
    program, worlds = points_of_group(number)
    q = np.array(list(states(mechanism)), dtype)
    found = np.reshape(CompiledFunction(program, dtype=dtype, threads=1)(q), (WORLDS, len(worlds[0]), -1))
    tolerance, checked, differ = (1e-9, 0, 0) if dtype == "float64" else (2e-3, 0, 0)
    for world, own in zip(worlds, found, strict=True):
        for expected, numbers in zip(world, own, strict=True):
            assert numbers[-1] == (expected is not None)
            if expected is None:
                continue
            values = numbers[:-1].reshape(-1, NUMBERS)
            exist = expected[:, 0] < FAR / 2
            if dtype == "float64":
                assert exist.sum() == (values[:, 0] < FAR / 2).sum()
            # rounding decides the order of the points
            errors = np.abs(values[None] - expected[exist][:, None]).max(axis=2).min(axis=1)
            checked += len(errors)
            differ += (errors > tolerance).sum()
    # and in single precision which of several points a manifold keeps
    assert checked > 25 and differ <= (0 if dtype == "float64" else 0.1 * checked)


HARD = """<mujoco><asset><mesh name="m" vertex="-.1 -.1 -.1  .1 -.1 -.1  0 .15 -.1  0 0 .2"/></asset>
<worldbody>
<geom type="box" size=".5 .5 .1" pos="0 0 -.1"/>
<body pos="-.2 0 .058"><freejoint/><geom type="cylinder" size=".1 .06" mass="1"/></body>
<body pos=".2 0 .098"><freejoint/><geom type="mesh" mesh="m" mass="2"/></body>
</worldbody></mujoco>"""


def test_hard_contacts_of_several_kinds_compiled_and_on_floats():
    """The search margin of a hard contact is half the thickness of a shape, whose kind is read, too."""
    soft = read_mjcf("hard.xml", text=HARD)
    geometry = [replace(g, surface=replace(g.surface, hard=True)) for g in soft.geometry]
    m = soft.replace(geometry=geometry)
    fast, rng, forces = zw.compile(m, threads=1), np.random.default_rng(4), 0
    for _ in range(6):
        d = rng.normal(size=m.nv) * 0.01
        q, zero = zw.integrate_configuration(m, m.home or m.neutral, d, 1.0), np.zeros(m.nv)
        expected = zw.constrained_dynamics(m, q, zero, zero)
        found = fast.step(q, zero, zero, integrator="euler").v / m.options.timestep
        forces += np.count_nonzero(expected.force)
        scale = 1 + np.abs(expected.acceleration).max()
        assert np.abs(found - expected.acceleration).max() < 1e-9 * scale
    assert forces > 6


def test_a_single_world_and_many_are_alike():
    mechanism = shapes(FEW)
    assert {group.first.count for group in iterated_groups(mechanism)[1]} == {1, 2, 4}
    q = np.array(list(states(mechanism)))
    force, v = np.zeros((WORLDS, mechanism.nv)), np.zeros((WORLDS, mechanism.nv))
    fast = zw.compile(mechanism, threads=1)
    together = fast.step(q, v, force)
    for k in range(0, WORLDS, 5):
        assert np.array_equal(fast.step(q[k], v[k], force[k]).v, together.v[k])


FAR_ELLIPSOID = "<geom type='ellipsoid' size='.1 .1 .2' pos='3 3 3'/>"
GROUND = "<geom type='mesh' mesh='ground'/>"


def pushed_chain(fixed):
    """A slider with an ellipsoid that lies on a mesh of the world, and a chain of hinges with a mesh; its
    path is long enough for rows by wrench. fixed: the shapes of the world.
    """
    shapes = ["<geom type='ellipsoid' size='.05 .07 .1'/>", "<geom type='mesh' mesh='own'/>"]
    shapes += ["<geom size='.02' contype='0' conaffinity='0'/>"] * 14
    joints = ["<joint type='slide' axis='0 0 1'/>", *["<joint axis='0 1 0'/>"] * 15]
    places = ["0 0 .14", *[".4 0 0"] * 15]
    bodies = "".join(f"<body pos='{p}'>{j}{s}" for p, j, s in zip(places, joints, shapes, strict=True))
    return f"""<mujoco><option gravity="0 0 0"/><asset>
      <mesh name="ground" vertex="-1 -1 -1 1 -1 -1 -1 1 -1 1 1 -1 -1 -1 .05 1 -1 .05 -1 1 .06 1 1 .055"/>
      <mesh name="own" vertex="-.1 -.1 -.1 .1 -.1 -.1 -.1 .1 -.1 .1 .1 -.1 0 0 .1"/></asset>
    <worldbody>{fixed}{bodies}{"</body>" * 16}</worldbody></mujoco>"""


@pytest.mark.parametrize("fixed", [GROUND, GROUND + FAR_ELLIPSOID, FAR_ELLIPSOID + GROUND])
def test_pairs_whose_first_or_second_shape_is_fixed(fixed):
    """They push the other one, in one loop, too. MuJoCo's distances end within a tolerance."""
    text = pushed_chain(fixed)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    mechanism = read_mjcf("chain.xml", text=text)
    found = zw.constrained_dynamics(mechanism, data.qpos.copy(), data.qvel.copy(), np.zeros(mechanism.nv))
    assert data.qacc[0] > 30
    np.testing.assert_allclose(found.acceleration, data.qacc, rtol=1e-3, atol=1e-4)
    worlds = zw.Worlds(mechanism, 1)
    worlds.step()
    mujoco.mj_step(model, data)
    np.testing.assert_allclose(worlds.v[0], data.qvel, rtol=1e-3, atol=1e-6)
