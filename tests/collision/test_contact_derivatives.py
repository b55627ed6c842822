"""Derivatives of contact points by the optimality conditions, against differences, and kinks."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.collision.shape_pairs import ShapePair
from tests.collision.test_contact_manifolds import CASES, Two, pose
from tests.collision.test_contact_points import BY_ITERATION
from zwang.algebra.dual_control_flow import Tangent, parts, tangents
from zwang.algebra.rotations import skew
from zwang.collision import FAR, contact_points_between
from zwang.collision.convex.kinks import has_kink
from zwang.collision.narrow_phase import placed
from zwang.collision.shapes import PlacedShape
from zwang.kinematics.poses import link_poses

TANGENT = np.vectorize(Tangent, otypes=[object])


def both(pair, tree, q):
    """The two shapes of a pair at q."""
    poses = link_poses(tree, q)
    return placed(pair.a, poses), placed(pair.b, poses)


def is_kinked(pair, shapes, reach):
    return has_kink(pair, *shapes, contact_points_between(pair, *shapes), reach)


def displaced(shape, twist, s):
    """The shape displaced by s along a twist (6,), translation before rotation."""
    R, p = np.array(shape.R, float), np.array(shape.p, float)
    return shape._replace(R=Rotation.from_rotvec(twist[3:] * s).as_matrix() @ R, p=p + twist[:3] * s)


def moving(shape, twist):
    """The shape as tangents along a twist."""
    R, p = np.array(shape.R, float), np.array(shape.p, float)
    return PlacedShape(shape.sizes, TANGENT(R, skew(twist[3:]) @ R), TANGENT(p, twist[:3]))


def numbers(points):
    """Distance, position and frame of every contact point, in one array."""
    return np.array([x for p in points for x in (p.distance, *p.position, *np.ravel(p.frame))], dtype=object)


def values(pair, a, b):
    return numbers(contact_points_between(pair, a, b)).astype(float)


def derivatives(pair, a, b):
    """The values and derivatives of the contact points of shapes that are tangents."""
    with tangents():
        found = [parts(x) for x in numbers(contact_points_between(pair, a, b))]
    return np.array(found, float).T


def central(function, s):
    """The derivative of a function at 0 by Richardson's extrapolation."""
    fine, coarse = ((function(h) - function(-h)) / (2 * h) for h in (s, 2 * s))
    return (4 * fine - coarse) / 3


@pytest.mark.parametrize("kinds", BY_ITERATION, ids="-".join)
def test_derivatives_of_nearest_points_are_the_limit_of_differences(kinds):
    shapes, rng, errors = ShapePair(*kinds), np.random.default_rng(2), []
    pair = replace(shapes.pair, single=True, margin=10.0)
    for _ in range(4):
        q = shapes.configuration(rng, aligned=False)
        (a, b), twist = both(pair, shapes.mechanism.tree, q), rng.normal(size=6)
        at_rest = values(pair, a, b)
        found, derivative = derivatives(pair, a, moving(b, twist))
        expected = central(lambda s, a=a, b=b, t=twist: values(pair, a, displaced(b, t, s)), 1e-5)
        assert np.abs(found - at_rest).max() < 1e-12
        errors.append(np.abs(derivative - expected).max() / np.abs(expected).max())
    assert np.median(errors) < 1e-9 and max(errors) < 1e-7


@pytest.mark.parametrize(
    "kinds", [("capsule", "cylinder"), ("cylinder", "box"), ("ellipsoid", "mesh")], ids="-".join
)
def test_derivatives_by_the_sizes_of_shapes_are_the_limit_of_differences(kinds):
    shapes, rng = ShapePair(*kinds), np.random.default_rng(6)
    pair = replace(shapes.pair, single=True, margin=10.0)
    for _ in range(3):
        a, b = both(pair, shapes.mechanism.tree, shapes.configuration(rng, aligned=False))
        rates = rng.normal(size=len(a.sizes))

        def grown(s, a=a, rates=rates):
            return a._replace(sizes=tuple(x + s * rate for x, rate in zip(a.sizes, rates, strict=True)))

        larger = a._replace(sizes=tuple(map(Tangent, a.sizes, rates)))
        _, derivative = derivatives(pair, larger, b)
        expected = central(lambda s, grown=grown, b=b: values(pair, grown(s), b), 1e-5)
        assert np.abs(derivative - expected).max() < 1e-8 * max(1, np.abs(expected).max())


@pytest.mark.parametrize(
    "name", ["brick on a table", "disc on a post", "lying cylinder on a table", "lying capsule on a drum"]
)
def test_derivatives_of_manifolds_are_the_limit_of_differences(name):
    below, above, rest, height = CASES[name]
    two, rng, compared = Two(below, above), np.random.default_rng(4), 0
    while compared < 3:
        a, b = both(two.pair, two.mechanism.tree, pose(rng, rest, height))
        twist, at_rest = rng.normal(size=6), values(two.pair, a, b)
        active = np.repeat(at_rest[::13] < FAR, 13)
        if active.sum() < 2 * 13 or is_kinked(two.pair, (a, b), 1e-5):
            continue
        _, derivative = derivatives(two.pair, a, moving(b, twist))
        expected = central(lambda s, a=a, b=b, t=twist: values(two.pair, a, displaced(b, t, s)), 1e-6)
        assert np.abs(derivative - expected)[active].max() < 1e-7 * max(1, np.abs(expected[active]).max())
        compared += 1


def test_ties_between_features_are_kinks():
    """Parallel faces with one contact point, and a sphere above the edge between a box's face and its rim."""
    below, above, rest, height = CASES["brick on a table"]
    two = Two(below, above, flags='<flag multiccd="disable"/>')
    q = np.array([0.1, 0.05, height - 0.005, *rest])
    assert is_kinked(two.pair, both(two.pair, two.mechanism.tree, q), 1e-6)
    tilted = np.array([0.1, 0.05, height - 0.005, 1, 0.002, 0.001, 0]) / [1, 1, 1, *[np.hypot(1, 0.0022)] * 4]
    assert not is_kinked(two.pair, both(two.pair, two.mechanism.tree, tilted), 1e-6)

    ball = Two('type="box" size=".5 .5 .5"', 'type="sphere" size=".1"')
    for x, kink in ((0.5, True), (0.51, False), (0.49, False)):
        at_edge = np.array([x, 0.0, 0.58, 1, 0, 0, 0])
        assert bool(is_kinked(ball.pair, both(ball.pair, ball.mechanism.tree, at_edge), 1e-6)) == kink
