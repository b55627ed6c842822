"""Signed distances of shapes of all kinds against MuJoCo's, in one compiled loop and on floats."""

import itertools

import mujoco
import numpy as np
import pytest

import zwang as zw
from zwang.api.compilation.programs import compile_function
from zwang.collision.distances import placed_shapes, shape_distances
from zwang.errors import UnsupportedError
from zwang.kinematics.kinematics import Kinematics

SHAPES = {
    "ball": 'type="sphere" size=".1"',
    "pill": 'type="capsule" size=".06 .12"',
    "egg": 'type="ellipsoid" size=".08 .11 .14"',
    "can": 'type="cylinder" size=".07 .1"',
    "brick": 'type="box" size=".06 .09 .12"',
    "wedge": 'type="mesh" mesh="wedge"',
}
BODIES = "".join(
    f'<body name="{name}"><freejoint/><geom name="{name}" {shape}/></body>' for name, shape in SHAPES.items()
)
TEXT = f"""<mujoco><option><flag contact="disable"/></option>
<asset><mesh name="wedge" vertex="0 0 0 .2 0 0 0 .2 0 0 0 .2 .2 .1 .05"/></asset>
<worldbody><geom name="floor" type="plane" size="5 5 .1"/>{BODIES}</worldbody></mujoco>"""


def test_distances_of_all_kinds_in_one_call_equal_mujoco():
    m = zw.load("shapes.xml", text=TEXT)
    shapes = placed_shapes(m)
    pairs = list(itertools.permutations(shapes, 2))[::2]  # some in the other order
    reaches = [10.0] * len(pairs)

    def function(q):
        found = shape_distances(pairs, Kinematics(m.tree, q).poses, reaches)
        return np.array([x for near in found for x in (near.distance, *near.first, *near.second)])

    model = mujoco.MjModel.from_xml_string(TEXT)
    data, rng, ends = mujoco.MjData(model), np.random.default_rng(0), np.zeros(6)
    q = np.array([(*rng.uniform((-0.5, -0.5, 0.3), (0.5, 0.5, 1.3)), *rng.normal(size=4)) for _ in SHAPES])
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1)[:, None]
    data.qpos = q.ravel()
    mujoco.mj_forward(model, data)
    compiled = compile_function(function, {"q": m.nq}, threads=1)(data.qpos)
    floats = np.array(function(data.qpos), dtype=float)
    np.testing.assert_allclose(compiled, floats, atol=1e-9)
    for (a, b), (distance, *points) in zip(pairs, compiled.reshape(-1, 7), strict=True):
        numbers = [model.geom(shape.shape.name).id for shape in (a, b)]
        theirs = mujoco.mj_geomDistance(model, data, *numbers, 10, ends)
        assert theirs > 0 and distance == pytest.approx(theirs, abs=1e-5), (a.name, b.name)
        assert np.linalg.norm(np.subtract(points[3:], points[:3])) == pytest.approx(distance, abs=1e-9)


def test_distances_of_height_fields_are_refused():
    field = zw.HeightField(np.zeros((3, 3)), (1, 1), base=0.1, name="terrain")
    ball = zw.Body("ball", zw.Free("free"), mass=1.0, geometry=[zw.Sphere(0.1)])
    m = zw.Mechanism("field", [ball], geometry=[field])
    with pytest.raises(UnsupportedError, match="'terrain' and 'sphere 1 of ball': height fields"):
        shape_distances([placed_shapes(m)], Kinematics(m.tree, m.neutral).poses, [1.0])
