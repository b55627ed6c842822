"""Manipulability: the arm of Fu, ME331, published arms, ellipsoids, gradients, singular directions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import zwang as zw
from tests.cases import case, references
from tests.mechanisms import random_mechanism
from tests.robot import dh
from tests.robot.test_inverse_kinematics import coupler_point, four_bar

angles = st.floats(-3, 3)
lengths = st.floats(0.2, 3)


@pytest.mark.parametrize("reference", references("robot_analysis", "A03_manipulability_2link"))
def test_me331_two_link_arm(reference):
    """mu = a1 a2 |sin theta2|, the semi-axes, condition and dexterity."""
    arm = dh.two_link(reference["a1"], reference["a2"])
    w = zw.robot.manipulability(arm, reference["q"], "tip")
    assert w.measure == pytest.approx(reference["mu"], abs=1e-12)
    assert abs(w.determinant) == pytest.approx(reference["mu"], abs=1e-12)
    np.testing.assert_allclose(w.singular_values, reference["sigma"], atol=1e-12)
    assert w.dexterity == pytest.approx(reference["dexterity"], abs=1e-12)
    if reference["kappa"] is None:
        assert w.condition == np.inf and w.rank == 1
    else:
        assert w.condition == pytest.approx(reference["kappa"], rel=1e-12)


@given(a1=lengths, a2=lengths, q1=angles, q2=angles)
def test_the_measure_is_the_area_of_the_parallelogram(a1, a2, q1, q2):
    w = zw.robot.manipulability(dh.two_link(a1, a2), (q1, q2), "tip")
    assert w.measure == pytest.approx(a1 * a2 * abs(np.sin(q2)), abs=1e-12)


@pytest.mark.parametrize("name", dh.ARMS)
def test_published_arms(name):
    """Measures, singular values, conditions, ellipsoids, ranks and gradients of G01."""
    for reference in case("robot_analysis", "G01_manipulability")["reference"][name].values():
        m, q = dh.arm(name), reference["q"]
        pose, position, orientation = (
            zw.robot.manipulability(m, q, "tip", part=part) for part in ("pose", "position", "orientation")
        )
        np.testing.assert_allclose(pose.singular_values, reference["singular_values"], atol=1e-10)
        for w, key in ((pose, "all"), (position, "trans"), (orientation, "rot")):
            assert w.measure == pytest.approx(reference[f"manipulability_{key}"], abs=1e-10)
        assert pose.rank == reference["rank"]
        assert position.condition == pytest.approx(reference["condition_trans"], rel=1e-10)
        assert position.dexterity == pytest.approx(reference["inverse_condition_trans"], abs=1e-10)
        ellipsoid = position.velocity_ellipsoid
        np.testing.assert_allclose(ellipsoid.lengths, reference["trans_ellipsoid_semi_axes"], atol=1e-10)
        along = np.sum(ellipsoid.axes.T * reference["trans_ellipsoid_directions"], axis=1)
        np.testing.assert_allclose(np.abs(along), 1, atol=1e-10)
        if reference["rank"] == 6:
            np.testing.assert_allclose(pose.gradient(), reference["gradient_manipulability"], atol=1e-6)
            assert pose.condition == pytest.approx(reference["condition_all"], rel=1e-10)
        else:
            assert pose.condition == np.inf and np.isnan(pose.gradient()).all()


def test_puma_as_the_book_prints_it():
    published = case("robot_analysis", "G01_manipulability")["published"]["puma560_qn"]
    q = (0, np.pi / 4, np.pi, 0, np.pi / 4, 0)
    for part, key in ((None, "all"), ("position", "trans"), ("orientation", "rot")):
        w = zw.robot.manipulability(dh.arm("puma560"), q, "tip", part=part)
        assert f"{w.measure:.4f}" == f"{published[f'manipulability_{key}']:.4f}"


@given(q1=angles, q2=angles)
def test_velocity_and_force_ellipsoids_have_the_same_axes_and_reciprocal_lengths(q1, q2):
    if abs(np.sin(q2)) < 0.01:
        return
    w = zw.robot.manipulability(dh.two_link(1, 0.7), (q1, q2), "tip")
    velocity, force = w.velocity_ellipsoid, w.force_ellipsoid
    np.testing.assert_allclose(velocity.lengths, 1 / force.lengths[::-1], rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(velocity.axes * force.axes[:, ::-1], axis=0)), 1, rtol=1e-9)


def test_the_ellipsoid_holds_all_velocities_of_unit_joint_speeds():
    """Its surface is reached, and never left, by random unit joint speeds."""
    m, q = dh.arm("ur5"), [0.4, -1.1, 1.3, -0.9, 0.7, 0.2]
    w = zw.robot.manipulability(m, q, "tip", part="position")
    v = np.random.default_rng(0).normal(size=(2000, 6))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    velocities = v @ zw.frame_jacobian(m, q, "tip")[:3].T
    e = w.velocity_ellipsoid
    sizes = np.sum((velocities @ e.axes / e.lengths) ** 2, axis=1)
    assert sizes.max() <= 1 + 1e-12 and sizes.max() > 0.95


def test_speed_errors_stay_within_their_bounds():
    m, q = dh.arm("puma560"), [0, 0.7, 3.0, 0, 0.7, 0]
    low, high = zw.robot.manipulability(m, q, "tip").velocity_error_bounds
    J = zw.frame_jacobian(m, q, "tip")
    error = np.random.default_rng(0).normal(size=(500, 6))
    ratio = np.linalg.norm(np.linalg.solve(J, error.T), axis=0) / np.linalg.norm(error, axis=1)
    assert low <= ratio.min() and ratio.max() <= high


@pytest.mark.parametrize("axes", ["world", "body"])
@pytest.mark.parametrize("seed", range(4))
def test_gradients_are_those_of_finite_differences(seed, axes):
    """Of any part, in any axes, on mechanisms of all kinds of joints, along the speeds."""
    m = random_mechanism(seed, bodies=6)
    frame = m.bodies[-1].name
    q = zw.integrate_configuration(
        m, np.array(m.neutral, float), np.random.default_rng(seed).normal(size=m.nv), 1
    )
    options = {"components": ("x", "rz"), "axes": axes, "characteristic_length": 0.7}
    w = zw.robot.manipulability(m, q, frame, **options)
    h = 1e-6
    numeric = []
    for e in np.eye(m.nv):
        ends = [
            zw.robot.manipulability(m, zw.integrate_configuration(m, q, e, s * h), frame, **options).measure
            for s in (1, -1)
        ]
        numeric.append((ends[0] - ends[1]) / (2 * h))
    np.testing.assert_allclose(w.gradient(), numeric, atol=1e-7 * max(1, w.measure))


def test_a_batch_equals_its_members():
    m = dh.arm("panda")
    q = np.random.default_rng(2).uniform(-1, 1, (40, 7)) - (0, 0, 0, 1.5, 0, 0, 0)
    batch = zw.robot.manipulability(m, q, "tip")
    for k in (0, 17, 39):
        one = zw.robot.manipulability(m, q[k], "tip")
        assert one.measure == pytest.approx(batch.measure[k], rel=1e-12)
        assert one.condition == pytest.approx(batch.condition[k], rel=1e-9)
        np.testing.assert_allclose(one.gradient(), batch.gradient()[k], atol=1e-12)
        for kind in ("inertia_ellipsoid", "acceleration_ellipsoid"):
            np.testing.assert_allclose(
                getattr(one, kind)().lengths, getattr(batch, kind)().lengths[k], rtol=1e-9, atol=1e-12
            )


def test_no_configurations_give_no_measures():
    arm = zw.robot.from_dh(d=[0, 0], a=[1, 1], alpha=[0, 0])
    found = zw.robot.manipulability(arm, np.zeros((0, 2)), "tip")
    assert found.measure.shape == (0,) and "shape (0,)" in str(found)


def test_the_text_of_a_result_is_a_summary():
    arm = zw.robot.from_dh(d=[0, 0], a=[1, 1], alpha=[0, 0])
    text = str(zw.robot.manipulability(arm, [0.3, np.pi / 2], "tip", part="position"))
    assert "the position of 'tip': measure 1, condition number 2.618, rank 2" in text and len(text) < 130
    assert "the shape (3,)" in str(zw.robot.manipulability(arm, np.ones((3, 2)), "tip"))


def test_length_weighs_metres_against_radians():
    """Counting positions per 0.5 m doubles their rows: det J of a 6-axis arm grows by 2^3."""
    m, q = dh.arm("ur5"), [0.4, -1.1, 1.3, -0.9, 0.7, 0.2]
    one, half = (zw.robot.manipulability(m, q, "tip", length=length) for length in (1.0, 0.5))
    assert half.measure == pytest.approx(8 * one.measure, rel=1e-12)


def test_own_axes_and_turned_axes_keep_the_measure():
    m, q = dh.arm("panda"), [0.4, 0.5, -0.6, -1.7, 0.8, 1.9, -0.3]
    turned = zw.frame_pose(m, [0.1, 0.2, 0.3, -1, 0.5, 1.5, 0.7], "tip").R
    measures = [zw.robot.manipulability(m, q, "tip", axes=axes).measure for axes in ("world", "body", turned)]
    np.testing.assert_allclose(measures, measures[0], rtol=1e-12)


# ------------------------------------------------------------ singular and redundant


def test_a_stretched_arm_cannot_move_along_itself():
    w = zw.robot.manipulability(dh.two_link(), (np.pi / 2, 0), "tip")
    assert w.rank == 1 and "cannot move along y" in w.singularity()
    np.testing.assert_allclose(np.abs(w.lost_directions()[:, 0]), (0, 1, 0), atol=1e-12)
    near = zw.robot.manipulability(dh.two_link(), (np.pi / 2, 1e-4), "tip")
    assert near.singularity().startswith("near a singularity") and near.rank == 2
    assert zw.robot.manipulability(dh.two_link(), (0, 1.5), "tip").singularity().startswith("regular")


def test_the_lost_direction_of_a_wrist():
    """No joint speeds move the frame along it: it is orthogonal to J."""
    q = case("robot_analysis", "G01_manipulability")["reference"]["ur5"]["wrist_sing"]["q"]
    m = dh.arm("ur5")
    lost = zw.robot.manipulability(m, q, "tip").lost_directions()
    assert lost.shape == (6, 1)
    assert np.abs(lost.T @ zw.frame_jacobian(m, q, "tip")).max() < 1e-12


def test_the_null_space_leaves_the_frame_at_rest():
    m, q = dh.arm("panda"), [0.4, 0.5, -0.6, -1.7, 0.8, 1.9, -0.3]
    w = zw.robot.manipulability(m, q, "tip")
    N = w.null_space()
    assert N.shape == (7, 1) and w.redundancy == 1
    assert np.abs(zw.frame_jacobian(m, q, "tip") @ N).max() < 1e-12


# ------------------------------------------------------------ with masses


def massive_two_link() -> zw.Mechanism:
    bodies = (
        zw.Body(
            "upper", zw.Revolute("q1", axis=(0, 0, 1)), mass=3, com=(0.4, 0, 0), inertia=(0.01, 0.1, 0.1)
        ),
        zw.Body(
            "lower",
            zw.Revolute("q2", axis=(0, 0, 1)),
            "upper",
            (1, 0, 0),
            mass=2,
            com=(0.3, 0, 0),
            inertia=(0.01, 0.05, 0.06),
        ),
        zw.Body("tip", parent="lower", position=(0.7, 0, 0)),
    )
    return zw.Mechanism(bodies=bodies, gravity=(0, -9.81, 0))


def test_asada_and_yoshikawa_ellipsoids_by_forward_dynamics():
    """A unit force at the tip along an axis of the inertia ellipsoid gives an acceleration along it, of
    the squared half length; unit torques give an acceleration on the surface of the acceleration ellipsoid.
    """
    m, q = massive_two_link(), np.array([0.3, 1.1])
    w = zw.robot.manipulability(m, q, "tip")
    J = zw.frame_jacobian(m, q, "tip")[:3]
    rest = zw.forward_dynamics(m, q, [0, 0], [0, 0])
    inertia = w.inertia_ellipsoid()
    for axis, half in zip(inertia.axes.T, inertia.lengths, strict=True):
        a = J @ (zw.forward_dynamics(m, q, [0, 0], J.T @ axis) - rest)
        np.testing.assert_allclose(a, half**2 * axis, atol=1e-12)
    acceleration = w.acceleration_ellipsoid((4.0, 2.0))
    angles = np.linspace(0, 2 * np.pi, 60)
    sizes = []
    for c, s in zip(np.cos(angles), np.sin(angles), strict=True):
        a = J @ (zw.forward_dynamics(m, q, [0, 0], (4.0 * c, 2.0 * s)) - rest)
        sizes.append(np.sum((acceleration.axes.T @ a / acceleration.lengths) ** 2))
    np.testing.assert_allclose(sizes, 1, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"frame": "top"}, zw.errors.UnknownNameError, "'tip'"),
        ({"q": (0, 0, 0)}, zw.errors.ShapeError, r"\(2,\)"),
        ({"part": "all"}, zw.errors.DescriptionError, "'pose'"),
        ({"axes": "tool"}, zw.errors.DescriptionError, "'world'"),
        ({"length": 0}, zw.errors.DescriptionError, "positive"),
        ({"components": ["w"]}, zw.errors.DescriptionError, "x, y, z"),
        ({"components": ["x", "x"]}, zw.errors.DescriptionError, "each once"),
        ({"frame": "world"}, zw.errors.DescriptionError, "no joint"),
    ],
)
def test_a_wrong_call_is_named(change, error, message):
    arguments = {"q": (0.1, 0.2), "frame": "tip", **change}
    with pytest.raises(error, match=message):
        zw.robot.manipulability(dh.two_link(), arguments.pop("q"), arguments.pop("frame"), **arguments)


def test_a_direction_in_which_no_joint_moves_the_frame_has_no_dexterity():
    """A stretched arm along x: J = 0 along x."""
    w = zw.robot.manipulability(dh.two_link(), (0, 0), "tip", components=("x",))
    assert (w.rank, w.dexterity, w.condition, w.measure) == (0, 0, np.inf, 0)


@pytest.mark.parametrize(("text", "names"), [("xz", ("x", "z")), ("ry", ("ry",)), ("x", ("x",))])
def test_components_may_be_written_as_one_text(text, names):
    values = [
        zw.robot.manipulability(dh.two_link(), (0.1, 0.2), "tip", components=c).singular_values
        for c in (text, names)
    ]
    np.testing.assert_array_equal(values[0], values[1])


@pytest.mark.parametrize("limits", [(1, np.nan), (np.inf, 1), (1, -1)])
def test_torque_limits_of_an_ellipsoid_are_finite(limits):
    w = zw.robot.manipulability(dh.two_link(), (0.1, 0.2), "tip")
    with pytest.raises(zw.errors.StateError, match="torque_limits is"):
        w.acceleration_ellipsoid(limits)


# ------------------------------------------------------------ couples and loops


def test_a_mimic_joint_adds_its_column():
    """q2 = 2 q1: the tip's speed is (J1 + 2 J2) q1'."""
    bodies = (
        zw.Body("a", zw.Revolute("q1", axis=(0, 0, 1)), mass=1),
        zw.Body("b", zw.Revolute("q2", axis=(0, 0, 1)), "a", (1, 0, 0), mass=1),
        zw.Body("tip", parent="b", position=(0.7, 0, 0)),
    )
    m = zw.Mechanism(bodies=bodies, constraints=[zw.JointCoupling("mimic", "q2", "q1", (0, 2))])
    q = (0.3, 0.6)
    J = zw.frame_jacobian(m, q, "tip")[:3]
    w = zw.robot.manipulability(m, q, "tip", part="position")
    assert w.measure == pytest.approx(np.linalg.norm(J[:, 0] + 2 * J[:, 1]), rel=1e-12)
    h = 1e-6
    ends = [
        zw.robot.manipulability(m, (0.3 + s, 0.6 + 2 * s), "tip", part="position").measure for s in (h, -h)
    ]
    np.testing.assert_allclose(w.gradient(), ((ends[0] - ends[1]) / (2 * h), 0), atol=1e-8)


def polynomially_coupled_arm() -> tuple[zw.Mechanism, Callable[[np.ndarray], np.ndarray]]:
    """A spatial arm with q2 = 0.1 + 0.5 q1 + 0.3 q1^2 and q3 = q2 - 0.2 q2^3, and its q of (q1, q4)."""
    axes = ((0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 1, 0))
    bodies, parent = [], "world"
    for k, axis in enumerate(axes, start=1):
        joint = zw.Revolute(f"q{k}", axis=axis)
        bodies.append(zw.Body(f"b{k}", joint, parent, (0.5, 0.1, 0.2), mass=1, inertia=(0.1, 0.1, 0.1)))
        parent = f"b{k}"
    couplings = [
        zw.JointCoupling("second", "q3", "q2", (0, 1, 0, -0.2)),
        zw.JointCoupling("first", "q2", "q1", (0.1, 0.5, 0.3)),
    ]
    m = zw.Mechanism(bodies=bodies, constraints=couplings, frames=[zw.Frame("tip", "b4", (0.4, 0, 0.1))])

    def completed(u: np.ndarray) -> np.ndarray:
        q2 = 0.1 + 0.5 * u[0] + 0.3 * u[0] ** 2
        return np.array([u[0], q2, q2 - 0.2 * q2**3, u[1]])

    return m, completed


@pytest.mark.parametrize("axes", ["world", "body"])
def test_polynomial_couplings_move_the_frame_along_their_slopes(axes):
    """The measure by differences of positions along the couplings, the gradient by those of the measure."""
    m, completed = polynomially_coupled_arm()
    options = {"part": "position", "axes": axes}

    def measure(u):
        return zw.robot.manipulability(m, completed(u), "tip", **options).measure

    def differences(f, u, h=1e-5):
        return np.array([(f(u + h * e) - f(u - h * e)) / (2 * h) for e in np.eye(2)])

    starts = np.array([(0.4, -0.3), (-0.7, 0.9), (1.1, 0.2)])
    batch = zw.robot.manipulability(m, [completed(u) for u in starts], "tip", **options)
    for u, mu, gradient in zip(starts, batch.measure, batch.gradient(), strict=True):
        J = differences(lambda u: np.array(zw.frame_pose(m, completed(u), "tip").p), u)
        assert mu == pytest.approx(np.sqrt(np.linalg.det(J @ J.T)), rel=1e-8)
        np.testing.assert_allclose(gradient[[0, 3]], differences(measure, u), atol=1e-8)
        assert not gradient[[1, 2]].any()
        objective = zw.robot.away_from_singularities(m, "tip", part="position", gain=1.0)
        np.testing.assert_allclose(objective(completed(u)), gradient / mu, rtol=1e-5)  # it is regularised


def test_a_frame_on_a_closed_loop_moves_along_its_curve():
    """A four-bar's point has one motion: along the coupler curve, found by moving the crank."""
    m, h = four_bar(), 1e-5
    q = zw.robot.solve_ik(m, "point", coupler_point(0.9), q0=(0.9, -0.6, 1.2), tolerance=1e-11).q
    w = zw.robot.manipulability(m, q, "point", part="position")
    assert w.jacobian.shape == (2, 1) and w.rank == 1
    tangent = (coupler_point(0.9 + h) - coupler_point(0.9 - h)) / (2 * h)
    direction = w.velocity_ellipsoid.axes[:2, 0]
    assert abs(direction @ tangent) / np.linalg.norm(tangent) == pytest.approx(1, abs=1e-6)
    inertia = w.inertia_ellipsoid().lengths
    assert inertia[0] > 0.1 and inertia[1] < 1e-7  # across the curve nothing gives way
    with pytest.raises(zw.errors.StateError, match="violates a loop"):
        zw.robot.manipulability(m, (0.1, 0.2, 0.3), "point")
    with pytest.raises(zw.errors.DescriptionError, match="gradient"):
        w.gradient()


def test_redundant_loops_that_are_closed_to_a_tolerance_leave_their_motions():
    """A parallel crank in a slanted plane, closed twice: the rows across the plane and one of the second bar
    are redundant, and errors of closure make them independent by a little.
    """
    slanted = Rotation.from_rotvec([0.3, -0.5, 0.2])
    tilt = tuple(map(tuple, slanted.as_matrix()))

    hinges = {"one": 0.0, "two": 0.3, "three": 0.6}
    bodies = [
        zw.Body(name, zw.Revolute(f"turn {name}", axis=(0, 0, 1)), mass=1.0, orientation=tilt,
                position=tuple(slanted.as_matrix() @ (x, 0, 0)), inertia=(1e-3, 1e-3, 1e-3))
        for name, x in hinges.items()
    ]  # fmt: skip
    bodies.append(zw.Body("rod", zw.Revolute("turn rod", axis=(0, 0, 1)), parent="one", mass=1.0,
                          position=(0.2, 0, 0), inertia=(1e-3, 1e-3, 1e-3)))  # fmt: skip
    loops = [zw.Connect(f"at {name}", ("rod", (x, 0, 0)), (name, (0.2, 0, 0)))
             for name, x in (("two", 0.3), ("three", 0.6))]  # fmt: skip
    m = zw.Mechanism("parallel", bodies, constraints=loops, frames=[zw.Frame("tip", "rod", (0.1, 0, 0))])
    q = np.array([0.7, 0.7, 0.7, -0.7])  # the rod stays parallel to the base
    for size in (0, 1e-9, 1e-8, 1e-7, 1e-6):
        moved = q + size * np.array([0.3, -0.5, 0.2, 0.4])
        w = zw.robot.manipulability(m, moved, "tip", components=("x", "y", "z"))
        # one motion: a circle of radius 0.2, whose unit of velocity is that of three cranks and the rod
        assert w.jacobian.shape == (3, 1)
        np.testing.assert_allclose(np.linalg.norm(w.jacobian), 0.2 / 2, rtol=1e-4)
