"""Nearest points, manifolds and resting bodies in single precision, against double precision."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import zwang as zw
from tests.collision.test_direction_cells import polyhedron
from zwang.collision.convex.nearest_points import nearest_points
from zwang.collision.convex.polyhedra import polyhedron_of
from zwang.collision.convex.support_functions import convex_shape_of
from zwang.collision.shapes import PlacedShape
from zwang.compiler.pipeline import trace_and_optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction

POSES = 400
SIZES = {
    "box": (0.08, 0.06, 0.1),
    "cylinder": (0.06, 0.09),
    "ellipsoid": (0.06, 0.08, 0.1),
    "capsule": (0.05, 0.08),
    "sphere": (0.07,),
    "mesh": polyhedron_of(polyhedron(80)),
}
PAIRS = [
    ("mesh", "mesh"),
    ("mesh", "sphere"),
    ("mesh", "capsule"),
    ("cylinder", "box"),
    ("cylinder", "cylinder"),
    ("cylinder", "mesh"),
    ("ellipsoid", "ellipsoid"),
]


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_nearest_points_are_those_of_double_precision(kinds):
    """Apart, near each other, and overlapping a little and deeply."""
    rng = np.random.default_rng(8)
    R = [Rotation.random(POSES, random_state=rng).as_matrix().reshape(POSES, 9) for _ in kinds]
    p = [np.zeros((POSES, 3)), 0.1 * rng.normal(size=(POSES, 3))]

    def values(*x):
        shapes = [PlacedShape(SIZES[kinds[k]], x[k].reshape(3, 3), x[k + 2]) for k in (0, 1)]
        found = nearest_points(*map(convex_shape_of, kinds, shapes))
        return np.array([found.distance, *found.normal, *found.first, *found.second])

    program = trace_and_optimise(values, {"R": 9, "S": 9, "p": 3, "r": 3})
    double, single = (CompiledFunction(program, dtype=x, threads=1) for x in ("float64", "float32"))
    for distance in (0.05, 1e-3, 1e-4, 0.0, -1e-4, -1e-3, -0.02):
        for _ in range(4):  # along the normal to this distance
            found = np.asarray(double(*R, *p))
            p[1] = p[1] + found[:, 1:4] * (distance - found[:, :1])
        inputs = [x.astype(np.float32) for x in (*R, *p)]
        expected = np.asarray(double(*(x.astype(float) for x in inputs)))
        found = np.asarray(single(*inputs))
        errors = np.abs(found[:, 0] - expected[:, 0])
        assert np.quantile(errors, 0.98) < 5e-7 and errors.max() < 1e-4  # of 0.3 m
        cosines = np.sum(found[:, 1:4] * expected[:, 1:4], axis=1)
        assert np.quantile(1 - cosines, 0.95) < 1e-6  # at others, two directions have nearly the same overlap
        assert np.isfinite(found).all()


BODIES = [
    '<geom type="cylinder" size=".1 .1" conaffinity="0"/>',
    '<geom type="ellipsoid" size=".1 .12 .1" conaffinity="0"/>',
    '<geom type="capsule" size=".1 .1" euler="90 0 0" conaffinity="0"/>',
    '<geom type="mesh" mesh="m" conaffinity="0"/>',
]


def test_bodies_rest_on_a_box_where_they_do_in_double_precision():
    bodies = "".join(
        f'<body pos="{0.5 * k} {0.02 * k} 0.203"><freejoint/>{geom}</body>' for k, geom in enumerate(BODIES)
    )
    text = f"""<mujoco><default><geom conaffinity="0"/></default>
        <asset><mesh name="m" vertex="-.1 -.1 -.1 .1 -.1 -.1 0 .1 -.1 0 0 .1"/></asset>
        <worldbody><geom type="box" size="2 2 .1" conaffinity="1"/>{bodies}</worldbody></mujoco>"""
    mechanism, ends = zw.load("bodies.xml", text=text), []
    for dtype in ("float64", "float32"):
        worlds = zw.Worlds(mechanism, 3, step=0.002, dtype=dtype)
        worlds.step(substeps=400)
        ends.append(np.array(worlds.q))
        assert np.abs(worlds.v).max() < 1e-2
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-4)


def test_a_falling_cylinder_steps_as_in_double_precision():
    """The corners of its caps that touch a floor and a box: many choices of four have nearly the same area,
    and standing upright, the lowest point of a rim is that of a slight tilt.
    """
    text = """<mujoco><worldbody><geom type="plane" size="3 3 .1"/>
        <geom type="box" size=".12 .5 .05" euler="0 0 20"/><geom type="box" size=".05 .5 .05" pos="1.1 0 0"/>
        <body pos="0 0 .16"><freejoint/><geom type="cylinder" size=".1 .1" conaffinity="0"/></body>
        <body pos="1 0 .11" euler="2 3 0"><freejoint/>
          <geom type="cylinder" size=".05 .1" conaffinity="0"/></body>
        </worldbody></mujoco>"""
    mechanism, worlds = zw.load("cylinder.xml", text=text), 32
    truth, double, single = (
        zw.Worlds(mechanism, worlds, step=0.002, dtype=x) for x in ("float64", "float64", "float32")
    )
    rng = np.random.default_rng(1)
    truth.set(v=0.5 * rng.normal(size=truth.v.shape))
    errors = []
    for _ in range(60):
        truth.step(substeps=5)
        q, v = (np.asarray(x, np.float32).astype(float) for x in (truth.q, truth.v))
        for both in (double, single):
            both.set(q=q, v=v)
            both.step()
        errors.append(np.abs(np.asarray(double.v) - np.asarray(single.v)).max(axis=1))
    assert np.quantile(errors, 0.98) < 1e-5
    assert np.median(errors) < 1e-6
