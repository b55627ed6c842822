"""Where shapes touch: MuJoCo's contacts, laws of distance, and the same in every reading."""

import numpy as np
import pytest

from tests.cases import case
from tests.collision.shape_pairs import FIRST, SECOND, Couple, unmatched
from zwang.algebra.rotations import from_quaternion
from zwang.collision import FAR, candidate_pairs, contact_frame, contact_points
from zwang.collision.narrow_phase import FUNCTIONS
from zwang.collision.shapes import COUNTS, PlacedShape
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import evaluate
from zwang.io.mjcf.read_mjcf import read_mjcf
from zwang.kinematics.poses import link_poses
from zwang.scalar import leaves_of

DEEP = 0.05  # m: up to where the way out of overlapping meshes is surely the shortest
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
EXACT = sorted(kinds for kinds in COUNTS if kinds not in BY_ITERATION and "mesh" not in kinds)


@pytest.mark.parametrize("aligned", [False, True], ids=["random", "aligned"])
@pytest.mark.parametrize("kinds", EXACT, ids="-".join)
def test_contacts_of_simple_shapes_are_mujocos(kinds, aligned):
    couple = Couple(*kinds)
    rng = np.random.default_rng(3)
    errors = []
    for _ in range(60):
        q = couple.configuration(rng, aligned)
        errors.append(unmatched(couple.gaps(q), couple.contacts(q)))
    # where shapes lie exactly along each other, rounding may decide which of several answers it is
    assert sorted(errors)[-12 if aligned else -1] < 1e-9


@pytest.mark.parametrize("kinds", BY_ITERATION, ids="-".join)
def test_distances_of_convex_shapes_are_mujocos(kinds):
    couple = Couple(*kinds)
    rng = np.random.default_rng(5)
    deepest = DEEP if "mesh" in kinds else 1
    for q in [
        q for q in (couple.configuration(rng, False) for _ in range(20)) if couple.distance(q) > -deepest
    ][:12]:
        poses = link_poses(couple.mechanism.tree, q)
        nearest = min(gap.distance for gap in contact_points(couple.pair, poses))
        assert abs(nearest - couple.distance(q)) < 1e-8


@pytest.mark.parametrize("name", ["ant", "half_cheetah", "hopper", "humanoid", "car"])
def test_stored_contacts_of_mujoco(name):
    stored = case("mujoco_oracle", name)
    mechanism = read_mjcf(f"{name}.xml", text=stored["parameters"]["xml"])
    pairs = candidate_pairs(mechanism)
    for state in stored["reference"][:20]:
        poses = link_poses(mechanism.tree, np.array(state["qpos"]))
        ours = [
            (pair, gap)
            for pair in pairs
            for gap in contact_points(pair, poses)
            if gap.distance < pair.margin + pair.gap
        ]
        assert len(ours) == len(state["contacts"])
        for contact in state["contacts"]:
            error = min(_difference(pair, gap, contact) for pair, gap in ours)
            assert error < 1e-12


def _difference(pair, gap, contact):
    if sorted((pair.a.index, pair.b.index)) != sorted(contact["geom"]):
        return np.inf
    ours = [gap.distance, *gap.position, *gap.frame.ravel(), *pair.friction, pair.condim, pair.margin]
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


@pytest.mark.parametrize("kinds", EXACT, ids="-".join)
def test_traced_gaps_equal_those_of_floats(kinds):
    def all_numbers(x):
        return np.array(
            [y for gap in FUNCTIONS[kinds](*_placed(kinds, x), 0.3) for y in leaves_of(gap)], dtype=object
        )

    program = trace(all_numbers, {"x": (24,)})
    rng = np.random.default_rng(7)
    states = [np.concatenate([_pose(rng), _pose(rng)]) for _ in range(20)]
    traced = evaluate(program, {"x": np.array(states)})["out"].reshape(len(states), -1)
    floats = np.array([[float(y) for y in all_numbers(x)] for x in states])
    assert np.abs(traced - floats).max() < 1e-12


@pytest.mark.parametrize("kinds", sorted(k for k in COUNTS if k[0] != "plane"), ids="-".join)
def test_a_move_of_both_shapes_moves_their_gaps(kinds):
    couple = Couple(*kinds)
    rng = np.random.default_rng(11)
    R, p = np.array(from_quaternion((0.5, 0.5, -0.5, 0.5)), float), np.array([0.3, -0.2, 0.1])
    tried = (couple.configuration(rng, False) for _ in range(100))
    q = next(q for q in tried if couple.distance(q) > -DEEP)
    poses = link_poses(couple.mechanism.tree, q)
    moved = [type(pose)(R @ pose.R, R @ pose.p + p) for pose in poses]
    for before, after in zip(
        contact_points(couple.pair, poses), contact_points(couple.pair, moved), strict=True
    ):
        if before.distance < FAR:
            assert abs(before.distance - after.distance) < 1e-6
            assert np.abs(R @ before.frame[0] - after.frame[0]).max() < 1e-4


@pytest.mark.parametrize(
    "kinds", [kinds for kinds in sorted(COUNTS) if kinds != ("plane", "mesh")], ids="-".join
)
def test_moving_along_the_normal_changes_the_distance_by_as_much(kinds):
    couple = Couple(*kinds)
    rng = np.random.default_rng(13)
    for _ in range(3):
        q = couple.configuration(rng, False)
        poses = link_poses(couple.mechanism.tree, q)
        first = min(contact_points(couple.pair, poses), key=lambda gap: gap.distance)
        shift = 1e-5
        q[-7:-4] += shift * np.asarray(first.frame[0], float) * (1 if couple.pair.b.shape.name == "b" else -1)
        after = min(
            contact_points(couple.pair, link_poses(couple.mechanism.tree, q)), key=lambda gap: gap.distance
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


def test_balls_in_the_same_place_have_a_finite_frame():
    couple = Couple("sphere", "sphere")
    q = np.tile([0.1, 0.2, 0.3, 1, 0, 0, 0], 2)
    (gap,) = couple.gaps(q)
    assert gap.distance == pytest.approx(-0.7) and np.isfinite(gap.frame).all()


def test_a_box_on_a_plane_has_four_gaps_at_its_corners():
    couple = Couple("plane", "box")
    found = couple.gaps(np.array([0, 0, 0.3, 1, 0, 0, 0]))
    assert sorted((*np.round(gap.position[:2], 12),) for gap in found) == [
        (-0.5, -0.25), (-0.5, 0.25), (0.5, -0.25), (0.5, 0.25)
    ]  # fmt: skip
    assert all(abs(gap.distance) < 1e-15 for gap in found)
