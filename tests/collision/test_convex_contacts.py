"""Contacts of convex shapes by iteration: the largest separation over all directions, and MuJoCo's
contacts.
"""

import numpy as np
import pytest

from tests.collision.shape_pairs import ShapePair, largest_difference
from tests.collision.test_contact_points import BY_ITERATION, DEEP
from zwang.collision import candidate_pairs, contact_points
from zwang.collision.narrow_phase import placed
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.kinematics.poses import link_poses


@pytest.mark.parametrize("kinds", BY_ITERATION, ids="-".join)
def test_single_contacts_of_convex_shapes_are_mujocos(kinds):
    """For nearly parallel faces MuJoCo adds contacts by rules of its own; elsewhere the nearest points
    are unique.
    """
    shapes, rng, compared = ShapePair(*kinds), np.random.default_rng(5), 0
    for _ in range(24):
        q = shapes.configuration(rng, aligned=False)
        theirs = shapes.contacts(q)
        if len(theirs) != 1 or theirs[0][0] < -DEEP:
            continue
        ours, (distance, position, frame) = shapes.contact_points(q), theirs[0]
        nearest = min(ours, key=lambda point: point.distance)
        assert abs(nearest.distance - distance) < 1e-9
        assert np.abs(nearest.frame[0] - frame[0]).max() < 2e-5  # MuJoCo's own ends at 1e-10 of the distance
        assert np.abs(nearest.position - position).max() < 5e-6
        compared += 1
    assert compared >= 3


def support(kind, shape, D):
    """The support function of a shape in the directions D (N, 3), in closed form."""
    sizes = shape.sizes.corners if kind == "mesh" else shape.sizes
    L, sizes = D @ np.asarray(shape.R, float), np.asarray(sizes, float)
    match kind:
        case "sphere":
            out = np.full(len(D), sizes[0])
        case "capsule":
            out = sizes[0] + sizes[1] * np.abs(L[:, 2])
        case "cylinder":
            out = sizes[0] * np.hypot(L[:, 0], L[:, 1]) + sizes[1] * np.abs(L[:, 2])
        case "ellipsoid":
            out = np.linalg.norm(L * sizes, axis=1)
        case "box":
            out = np.abs(L) @ sizes
        case "mesh":
            out = (L @ sizes.T).max(axis=1)
    return out + D @ np.asarray(shape.p, float)


@pytest.mark.parametrize("kinds", BY_ITERATION, ids="-".join)
def test_the_signed_distance_is_the_largest_separation_over_all_directions(kinds):
    """The signed distance is the separation along the normal, and no other direction has a larger one.

    For deep overlaps this is checked for directions near the normal only.
    """
    shapes, rng, compared = ShapePair(*kinds), np.random.default_rng(5), 0
    for _ in range(24):
        q = shapes.configuration(rng, aligned=False)
        nearest = shapes.nearest(q)
        if nearest.distance > shapes.margin:
            assert not shapes.contacts(q) and not shapes.contact_points(q)
            continue
        normal = np.asarray(nearest.frame[0], float)
        around = normal + np.logspace(-6, -3, 1000)[:, None] * rng.normal(size=(1000, 3))
        deep, error = nearest.distance < -DEEP, 1e-7 if nearest.distance < -DEEP else 1e-10
        D = np.vstack([normal[None], around] if deep else [normal[None], around, rng.normal(size=(2000, 3))])
        D /= np.linalg.norm(D, axis=1)[:, None]
        a, b = (
            placed(shape, link_poses(shapes.mechanism.tree, q)) for shape in (shapes.pair.a, shapes.pair.b)
        )
        separation = -support(kinds[0], a, D) - support(kinds[1], b, -D)
        assert separation[0] == pytest.approx(nearest.distance, rel=0, abs=error)
        assert separation.max() < nearest.distance + error
        compared += 1
    assert compared >= 10


def test_the_contacts_of_a_mesh_on_a_plane_are_mujocos():
    """The lowest vertex, and corners of the face at this vertex that is most nearly parallel to the plane."""
    shapes, rng, counts = ShapePair("plane", "mesh"), np.random.default_rng(3), []
    for _ in range(40):
        q = shapes.configuration(rng, aligned=False)
        q[2] = 0.5 * abs(q[2])
        ours, theirs = shapes.contact_points(q), shapes.contacts(q)
        assert largest_difference(ours, theirs) < 1e-12
        counts.append(len(ours))
    assert {2, 3} <= set(counts)


def test_a_brick_on_a_plane_has_contacts_at_its_four_lower_vertices():
    brick = " ".join(f"{x} {y} {z}" for x in (-0.2, 0.2) for y in (-0.3, 0.3) for z in (-0.1, 0.1))
    text = (
        f'<mujoco><asset><mesh name="brick" vertex="{brick}"/></asset><worldbody>'
        '<geom type="plane" size="1 1 1"/>'
        '<body pos="0 0 .099"><freejoint/><geom type="mesh" mesh="brick"/></body></worldbody></mujoco>'
    )
    mechanism = read_mjcf("brick.xml", text=text)
    (pair,) = candidate_pairs(mechanism)
    found = contact_points(pair, link_poses(mechanism.tree, np.array(mechanism.home, float)))
    points = sorted((*np.round(np.array(point.position[:2], float), 6),) for point in found)
    assert points == [(-0.2, -0.3), (-0.2, 0.3), (0.2, -0.3), (0.2, 0.3)]
    assert np.allclose([point.distance for point in found], -0.001)
