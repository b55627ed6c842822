"""Contact points of all pair types: MuJoCo's contacts, invariance of signed distances, equality of the
backends.
"""

import numpy as np
import pytest

from tests.cases import case
from tests.collision.shape_pairs import FIRST, SECOND, ShapePair, largest_difference
from zwang.algebra.rotations import from_quaternion
from zwang.collision import FAR, candidate_pairs, contact_frame, contact_points
from zwang.collision.narrow_phase import FUNCTIONS, contact_points_between, placed
from zwang.collision.shapes import COUNTS as ALL_COUNTS
from zwang.collision.shapes import PlacedShape
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.kinematics.poses import link_poses
from zwang.scalar import leaves_of

# height fields have tests of their own
COUNTS = {kinds: n for kinds, n in ALL_COUNTS.items() if "heightfield" not in kinds}

DEEP = 0.05  # m: the largest penetration of meshes for which the separating direction is unique
BY_ITERATION = sorted(
    kinds
    for kinds in COUNTS
    if "plane" not in kinds
    and (
        "mesh" in kinds
        or "ellipsoid" in kinds
        or kinds in {("capsule", "cylinder"), ("cylinder", "cylinder"), ("cylinder", "box")}
    )
)
CLOSED_FORM = sorted(kinds for kinds in COUNTS if kinds not in BY_ITERATION and "mesh" not in kinds)


@pytest.mark.parametrize("aligned", [False, True], ids=["random", "aligned"])
@pytest.mark.parametrize("kinds", CLOSED_FORM, ids="-".join)
def test_contacts_of_simple_shapes_are_mujocos(kinds, aligned):
    shapes = ShapePair(*kinds)
    rng = np.random.default_rng(3)
    errors = []
    for _ in range(60):
        q = shapes.configuration(rng, aligned)
        errors.append(largest_difference(shapes.contact_points(q), shapes.contacts(q)))
    # for exactly parallel faces or edges, rounding may select one of several valid contacts
    assert sorted(errors)[-12 if aligned else -1] < 1e-9


@pytest.mark.parametrize("kinds", BY_ITERATION, ids="-".join)
def test_distances_of_convex_shapes_are_mujocos(kinds):
    shapes = ShapePair(*kinds)
    rng = np.random.default_rng(5)
    deepest = DEEP if "mesh" in kinds else 1
    for q in [
        q for q in (shapes.configuration(rng, False) for _ in range(20)) if shapes.distance(q) > -deepest
    ][:12]:
        assert abs(shapes.nearest(q).distance - shapes.distance(q)) < 1e-8


@pytest.mark.parametrize("name", ["ant", "half_cheetah", "hopper", "humanoid", "car"])
def test_stored_contacts_of_mujoco(name):
    stored = case("mujoco_oracle", name)
    mechanism = read_mjcf(f"{name}.xml", text=stored["parameters"]["xml"])
    pairs = candidate_pairs(mechanism)
    for state in stored["reference"][:20]:
        poses = link_poses(mechanism.tree, np.array(state["qpos"]))
        ours = [
            (pair, point)
            for pair in pairs
            for point in contact_points(pair, poses)
            if point.distance < pair.margin + pair.gap
        ]
        assert len(ours) == len(state["contacts"])
        for contact in state["contacts"]:
            error = min(_difference(pair, point, contact) for pair, point in ours)
            assert error < 1e-12


def _difference(pair, point, contact):
    if sorted((pair.a.index, pair.b.index)) != sorted(contact["geom"]):
        return np.inf
    ours = [point.distance, *point.position, *point.frame.ravel(), *pair.friction, pair.condim, pair.margin]
    theirs = [contact["dist"], *contact["pos"], *contact["frame"], *contact["friction"], contact["dim"]]
    return np.abs(np.array(ours, float) - np.array([*theirs, contact["includemargin"]])).max()


def _placed(kinds, x):
    sizes = [
        () if kind == "plane" else tuple(float(s) for s in table[kind].split())
        for kind, table in zip(kinds, (FIRST, SECOND), strict=True)
    ]
    return [
        PlacedShape(size, x[start : start + 9].reshape(3, 3), x[start + 9 : start + 12])
        for size, start in zip(sizes, (0, 12), strict=True)
    ]


def _pose(rng):
    quaternion = rng.normal(size=4)
    R = np.array(from_quaternion(quaternion / np.linalg.norm(quaternion)), float)
    return np.concatenate([R.ravel(), rng.normal(size=3) * 0.4])


@pytest.mark.parametrize("kinds", CLOSED_FORM, ids="-".join)
def test_traced_contact_points_equal_those_on_floats(kinds):
    def all_numbers(x):
        return np.array(
            [y for point in FUNCTIONS[kinds](*_placed(kinds, x), 0.3) for y in leaves_of(point)], dtype=object
        )

    program = trace(all_numbers, {"x": (24,)})
    rng = np.random.default_rng(7)
    states = [np.concatenate([_pose(rng), _pose(rng)]) for _ in range(20)]
    traced = interpret(program, {"x": np.array(states)})["out"].reshape(len(states), -1)
    floats = np.array([[float(y) for y in all_numbers(x)] for x in states])
    assert np.abs(traced - floats).max() < 1e-12


@pytest.mark.parametrize("kinds", sorted(k for k in COUNTS if k[0] != "plane"), ids="-".join)
def test_contact_points_are_invariant_under_a_common_rigid_motion(kinds):
    shapes = ShapePair(*kinds)
    rng = np.random.default_rng(11)
    R, p = np.array(from_quaternion((0.5, 0.5, -0.5, 0.5)), float), np.array([0.3, -0.2, 0.1])
    tried = (shapes.configuration(rng, False) for _ in range(100))
    q = next(q for q in tried if shapes.distance(q) > -DEEP)
    poses = link_poses(shapes.mechanism.tree, q)
    moved = [type(pose)(R @ pose.R, R @ pose.p + p) for pose in poses]
    for before, after in zip(
        contact_points(shapes.pair, poses), contact_points(shapes.pair, moved), strict=True
    ):
        if before.distance < FAR:
            assert abs(before.distance - after.distance) < 1e-6
            assert np.abs(R @ before.frame[0] - after.frame[0]).max() < 1e-4


@pytest.mark.parametrize("kinds", [("capsule", "box"), ("sphere", "ellipsoid")], ids="-".join)
def test_contacts_of_small_shapes_are_those_of_large_ones(kinds):
    """Similarity: scaled by a power of two, all lengths are scaled exactly."""
    shapes, rng, touching = ShapePair(*kinds, margin=0.0), np.random.default_rng(1), 0
    for _ in range(12):
        q = shapes.configuration(rng, False)
        q[[0, 1, 2, 7, 8, 9]] *= 0.6
        poses = link_poses(shapes.mechanism.tree, q)
        a, b = placed(shapes.pair.a, poses), placed(shapes.pair.b, poses)
        expected = contact_points_between(shapes.pair, a, b)
        touching += min(point.distance for point in expected) < 0
        for scale in (2.0**-14, 2.0**-20):
            small = [PlacedShape(tuple(scale * s for s in x.sizes), x.R, scale * x.p) for x in (a, b)]
            found = contact_points_between(shapes.pair, *small)
            for point, other in zip(found, expected, strict=True):
                assert (point.distance == FAR) == (other.distance == FAR)
                if point.distance < FAR:
                    assert point.distance == pytest.approx(scale * other.distance, rel=1e-9, abs=0)
                    np.testing.assert_allclose(point.frame, other.frame, rtol=0, atol=1e-9)
    assert touching >= 4


@pytest.mark.parametrize("length", [1.0, 1e-4])
def test_a_capsule_across_an_edge_of_a_box_touches_it(length):
    """The axis is perpendicular to the edge and to its normal, at 0.09 lengths; the radius is 0.1 lengths."""
    box = PlacedShape(np.array([0.25, 0.2, 0.15]) * length, np.eye(3), np.zeros(3))
    outward = np.array([1.0, 0, 1]) / 2**0.5
    axis = np.array([1.0, 0, -1]) / 2**0.5
    R = np.array([outward, np.cross(axis, outward), axis]).T
    capsule = PlacedShape(
        (0.1 * length, 0.4 * length), R, (np.array([0.25, 0, 0.15]) + 0.09 * outward) * length
    )
    first, second = FUNCTIONS["capsule", "box"](capsule, box, 0.0)
    assert first.distance == pytest.approx(-0.01 * length, rel=1e-9, abs=0) and second.distance > 0
    np.testing.assert_allclose(first.frame[0], -outward, atol=1e-9)


@pytest.mark.parametrize(
    "kinds", [kinds for kinds in sorted(COUNTS) if kinds != ("plane", "mesh")], ids="-".join
)
def test_a_displacement_along_the_normal_changes_the_distance_by_its_length(kinds):
    shapes = ShapePair(*kinds, margin=10.0)
    rng = np.random.default_rng(13)
    for _ in range(3):
        q = shapes.configuration(rng, False)
        poses = link_poses(shapes.mechanism.tree, q)
        first = min(contact_points(shapes.pair, poses), key=lambda point: point.distance)
        shift = 1e-5
        q[-7:-4] += shift * np.asarray(first.frame[0], float) * (1 if shapes.pair.b.shape.name == "b" else -1)
        after = min(
            contact_points(shapes.pair, link_poses(shapes.mechanism.tree, q)),
            key=lambda point: point.distance,
        )
        assert abs(after.distance - first.distance - shift) < 1e-8


def test_frames_are_right_handed_rotations_for_every_normal():
    rng = np.random.default_rng(17)
    normals = [*np.eye(3), *-np.eye(3), *(n / np.linalg.norm(n) for n in rng.normal(size=(50, 3)))]
    for normal in normals:
        for along in (None, np.array([0.0, 0, 1]), normal):
            frame = contact_frame(normal, along)
            if along is not normal:
                assert np.abs(frame @ frame.T - np.eye(3)).max() < 1e-14
                assert np.linalg.det(frame) == pytest.approx(1)
            assert np.isfinite(frame).all() and (frame[0] == normal).all()


def test_concentric_spheres_have_a_finite_contact_frame():
    shapes = ShapePair("sphere", "sphere")
    q = np.tile([0.1, 0.2, 0.3, 1, 0, 0, 0], 2)
    (point,) = shapes.contact_points(q)
    assert point.distance == pytest.approx(-0.7) and np.isfinite(point.frame).all()


def test_a_box_on_a_plane_has_four_contact_points_at_its_corners():
    shapes = ShapePair("plane", "box")
    found = shapes.contact_points(np.array([0, 0, 0.3, 1, 0, 0, 0]))
    assert sorted((*np.round(point.position[:2], 12),) for point in found) == [
        (-0.5, -0.25), (-0.5, 0.25), (0.5, -0.25), (0.5, 0.25)
    ]  # fmt: skip
    assert all(abs(point.distance) < 1e-15 for point in found)
