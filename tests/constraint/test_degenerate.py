"""Degenerate mechanisms: contacts between immobile bodies, welds together with contacts, singular mass
matrices.
"""

import mujoco
import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.errors import DescriptionError, SimulationWarning, SolveError, StateError
from zwang.io.mjcf.read.read_mjcf import read_mjcf

BALL = '<freejoint/><geom size=".1" mass="1" {surface}/>'


@pytest.mark.parametrize("weld", ['body1="w"', 'body1="w" body2="a"'], ids=["to the world", "to a ball"])
def test_two_free_balls_that_may_touch_compile_beside_a_weld(weld):
    balls = "".join(
        f'<body name="{name}" pos="{x} 0 0"><freejoint/><geom size=".1" mass="1"/></body>'
        for name, x in [("a", 0), ("b", 0.15), ("w", 3)]
    )
    text = (
        '<mujoco><option tolerance="1e-15" iterations="300"/>'
        f"<worldbody>{balls}</worldbody><equality><weld {weld}/></equality></mujoco>"
    )
    mechanism, model = read_mjcf("balls.xml", text=text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    q, v, _ = zw.compile(mechanism).step(data.qpos, np.zeros(18), np.zeros(18), step=model.opt.timestep)
    mujoco.mj_step(model, data)
    assert data.nefc > 6
    np.testing.assert_allclose(v, data.qvel, atol=1e-9)
    np.testing.assert_allclose(q, data.qpos, atol=1e-11)


@pytest.mark.parametrize("hinge", ["", '<joint axis="0 1 0"/>'], ids=["nothing moves", "something moves"])
def test_a_contact_between_immobile_bodies_has_no_rows(hinge):
    text = f"""<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
    <body pos="0 0 .05"><geom name="s" size=".1"/>
    <body pos=".1 0 0"><geom name="box" type="box" size=".1 .1 .1"/></body></body>
    <body pos="3 0 2">{hinge}<geom name="arm" size=".1" pos=".2 0 0"/>
    <geom name="hand" size=".1" pos=".3 0 0"/></body></worldbody>
    <contact><pair geom1="s" geom2="floor"/><pair geom1="s" geom2="box"/>
    <pair geom1="arm" geom2="hand"/></contact></mujoco>"""
    mechanism, model = read_mjcf("still.xml", text=text), mujoco.MjModel.from_xml_string(text)
    data, rest = mujoco.MjData(model), np.zeros(mechanism.nv)
    mujoco.mj_forward(model, data)
    found = zw.constrained_dynamics(mechanism, rest, rest, rest)
    np.testing.assert_allclose(found.acceleration, data.qacc, atol=1e-12)
    assert not len(found.rows)
    run = zw.simulate(mechanism, duration=0.01, step=0.002, progress=False)
    mujoco.mj_step(model, data, 5)
    np.testing.assert_allclose(run.q.values[0, -1], data.qpos, atol=1e-12)


def two_prismatic_joints(axis=(1, 0, 0), **settings):
    """A body on two prismatic joints, by default along the same axis, so that the mass matrix is singular."""
    joints = (zw.Prismatic("first", axis=(1, 0, 0)), zw.Prismatic("second", axis=axis, **settings))
    return zw.Mechanism(bodies=[zw.Body("block", joint=joints, mass=1, inertia=(0.1, 0.1, 0.1))])


@pytest.mark.parametrize("solver", ["newton", "conjugate", "projected"])
@pytest.mark.parametrize("settings", [{}, {"limits": (-1, 1)}], ids=["free", "limited"])
@pytest.mark.parametrize("axis", [(1, 0, 0), (1, 1e-9, 0)], ids=["exactly", "to rounding"])
def test_a_singular_mass_matrix_is_reported_with_the_joints_name(axis, settings, solver):
    with pytest.raises(StateError, match=r"singular.*'first'"):
        zw.constrained_dynamics(two_prismatic_joints(axis, **settings), [0, 2], [0, 0], [1, 0], solver=solver)
    apart = zw.constrained_dynamics(
        two_prismatic_joints((1, 1e-3, 0), **settings), [0, 0], [0, 0], [1, 0], solver=solver
    )
    assert np.isfinite(apart.acceleration).all()


def test_a_matrix_inertia_is_symmetric_to_rounding():
    rng = np.random.default_rng(0)
    for _ in range(50):
        R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        given = R @ np.diag([0.1, 0.2, 0.25]) @ R.T
        kept = np.array(zw.Body("b", joint=zw.Free("f"), mass=1, inertia=given).inertia)
        assert (kept == kept.T).all()
        np.testing.assert_allclose(kept, given, rtol=0, atol=1e-16)
    given[0, 1] += 1e-9
    with pytest.raises(DescriptionError, match="body 'b' is not symmetric"):
        zw.Body("b", mass=1, inertia=given)


@pytest.mark.parametrize("numbers", [{"inertia": (-0.1, 0.1, 0.1)}, {"mass": -1.0}])
def test_the_composite_inertia_of_unchecked_bodies_may_not_be_negative(numbers):
    wrong = zw.Body("wrong", joint=zw.Free("f"), unchecked_inertia=True,
                    **({"mass": 1, "inertia": (0.1, 0.1, 0.1)} | numbers))  # fmt: skip
    with pytest.raises(DescriptionError, match=r"'wrong'.*negative mass or principal moment"):
        zw.Mechanism(bodies=[wrong])
    filled = zw.Body("rest", parent="wrong", mass=3, inertia=(0.3, 0.3, 0.3))
    assert zw.Mechanism(bodies=[wrong, filled]).nv == 6


def test_a_rolling_sphere_whose_radius_squared_overflows_is_carried_by_its_weight():
    """A sphere rolls on a level plane without acceleration, whatever its radius is."""
    wheel = zw.Body("wheel", zw.Free("wheel"), mass=1, inertia=(1, 1, 1))
    m = zw.Mechanism("wheel", [wheel], constraints=[zw.Rolling("roll", "wheel", radius=1e308)])
    found = zw.constrained_dynamics(m, [0, 0, 0, 1, 0, 0, 0], np.ones(6), np.zeros(6))
    np.testing.assert_allclose(found.acceleration, 0, atol=1e-12)
    np.testing.assert_allclose(found.forces["roll"], [0, 0, 9.81])


@pytest.mark.parametrize(
    "ratio",
    [
        zw.Pfaffian("ratio", {"x": 1, "y": -1e308}),
        zw.Holonomic("ratio", sp.Symbol("x", real=True) + 2**63 * sp.Symbol("y", real=True)),
    ],
    ids=["a float whose square overflows", "an integer beyond 64 bits"],
)
@pytest.mark.parametrize("rows", ["alone", "beside a soft row"])
def test_a_huge_gear_ratio_leaves_the_driven_slider_its_acceleration(ratio, rows):
    """1 N accelerates the slider x of 1 kg; the slider y, that is geared down by the ratio, takes no part."""
    sliders = [zw.Body(f"slider {n}", zw.Prismatic(n, axis=(1, 0, 0)), mass=1) for n in "xyz"]
    soft = zw.Pfaffian("soft", {"z": 1}, softness=zw.Softness())
    m = zw.Mechanism("sliders", sliders, constraints=[ratio] if rows == "alone" else [ratio, soft])
    found = zw.constrained_dynamics(m, np.zeros(3), np.zeros(3), [1, 0, 0])
    np.testing.assert_allclose(found.acceleration, [1, 0, 0], atol=1e-15)
    assert abs(found.forces["ratio"][0]) < 1e-30


def test_an_undefined_force_is_not_reported_as_a_missing_inertia():
    spring = zw.PointSpring(("b", (0, 0, 0)), ("world", (0, 0, 0)), stiffness=5, length=0.5)
    body = zw.Body("b", zw.Prismatic("x", axis=(1, 0, 0)), mass=1)
    mechanism = zw.Mechanism(bodies=[body], forces=[spring])
    for function in (zw.forward_dynamics, zw.constrained_dynamics):
        with pytest.raises(StateError, match=r"'x' is not finite.*point spring whose points coincide"):
            function(mechanism, [0], [0], [0])
    assert np.isnan(zw.compile(mechanism).forward_dynamics([0.0], [0.0], [0.0])).all()


HOOP = (
    zw.Body("hoop", zw.Revolute("psi", axis=(0, 0, 1))),
    zw.Body("bead", zw.Revolute("theta", axis=(0, 1, 0)), "hoop", mass=1.5, com=(0, 0, -1)),
)


@pytest.mark.parametrize(
    "drive",
    [
        zw.Pfaffian("drive", {"psi": 1}, rate=-4.0),
        zw.Holonomic("drive", sp.Symbol("psi") - 4 * sp.Symbol("t")),
        zw.Distance("drive", ("bead", (0, 0, -2)), ("world", (-2 * np.sin(1), 3, -2 * np.cos(1))), 3.0),
    ],
    ids=["Pfaffian", "Holonomic", "Distance"],
)
@pytest.mark.parametrize("coordinate_reduction", [False, True])
def test_a_bead_on_a_driven_hoop_whose_mass_matrix_is_singular_at_home(drive, coordinate_reduction):
    """theta'' = (psi'^2 cos theta - g) sin theta and, without mass of the hoop, psi turns by the torque
    m (sin^2 theta psi'' + 2 sin theta cos theta theta' psi').
    """
    m = zw.Mechanism("hoop", HOOP, constraints=[drive])
    is_rod = isinstance(drive, zw.Distance)  # is normal to the bead's meridian, and so drives psi alone
    spin = 0.0 if is_rod else 4.0
    q, v, s, c = [0, 1.0], [spin, 0.2], np.sin(1.0), np.cos(1.0)
    found = zw.constrained_dynamics(m, q, v, [0.3, 0], coordinate_reduction=coordinate_reduction)
    # the end of the rod moves along the meridian with 2 theta', and so towards the rod's other end
    spin_rate = (2 * 0.2) ** 2 / 3 / (2 * s) if is_rod else 0.0
    expected = [spin_rate, (spin * spin * c - 9.81) * s]
    np.testing.assert_allclose(np.abs(found.acceleration), np.abs(expected), atol=1e-12)
    torque = 1.5 * (s * s * found.acceleration[0] + 2 * s * c * 0.2 * spin) - 0.3
    np.testing.assert_allclose(found.rows.J.T @ found.force, [torque, 0], atol=1e-12)
    assert found.converged and found.kkt_residual < 1e-12
    run = zw.simulate(m, q, v, duration=0.1, step=1e-3, integrator="rk4", progress=False,
                      coordinate_reduction=coordinate_reduction)  # fmt: skip
    assert not run.status.any()


@pytest.mark.parametrize("eccentricity", [0, 1e-9, 1e-6, 1e-3])
def test_a_rod_couples_balanced_wheels(eccentricity):
    """Two equal cranks on a rod of the distance of their axes turn alike, as a locomotive's wheels."""
    wheels = [
        zw.Body(n, zw.Revolute(n, axis=(0, 1, 0)), position=(x, 0, 0), mass=2, com=(eccentricity, 0, 0),
                inertia=(0.2, i, 0.2)) for n, x, i in (("a", 0, 0.2), ("b", 1, 0.3))
    ]  # fmt: skip
    rod = zw.Distance("rod", ("a", (0.2, 0, 0)), ("b", (0.2, 0, 0)), 1.0)
    m = zw.Mechanism("locomotive", wheels, gravity=(0, 0, 0), constraints=[rod])
    inertia = 0.5 + 4 * eccentricity**2
    found = zw.constrained_dynamics(m, [0.5, 0.5], [1, 1], [1, 0])
    np.testing.assert_allclose(found.acceleration, [1 / inertia] * 2, rtol=1e-12)
    # the rod alone turns the second wheel: its moment arm is 0.2 sin of the crank's angle
    torque = (0.3 + 2 * eccentricity**2) / inertia
    np.testing.assert_allclose(abs(found.forces["rod"]), torque / (0.2 * np.sin(0.5)), rtol=1e-11)
    for reduction in (False, True):
        run = zw.simulate(m, [0.5, 0.5], [1, 1], duration=1.0, step=1e-2, integrator="rk4", progress=False,
                          record={"multipliers": True}, coordinate_reduction=reduction)  # fmt: skip
        np.testing.assert_allclose(run.q.values[0, -1], 1.5, atol=1e-10)
        assert np.isfinite(run.multiplier.values).all()
    # at its dead centre, but for rounding, the rod has no moment arm
    dead = zw.constrained_dynamics(m, [np.pi, np.pi], [0, 0], [1, 0])
    np.testing.assert_allclose(dead.acceleration, [1 / (0.2 + 2 * eccentricity**2), 0], atol=1e-6)


def test_a_rod_on_a_wheel_without_mass():
    """The wheel has an inertia, but no mass: with its driven neighbour it is as one wheel."""
    wheels = [
        zw.Body("a", zw.Revolute("a", axis=(0, 1, 0)), mass=0, inertia=(0.5, 0.5, 0.5)),
        zw.Body("b", zw.Revolute("b", axis=(0, 1, 0)), position=(1, 0, 0), mass=1, inertia=(0.2, 0.35, 0.2)),
    ]
    rod = zw.Distance("rod", ("a", (0, 0, -1)), ("b", (0, 0, -1)), 1.0)
    m = zw.Mechanism("wheels", wheels, gravity=(0, 0, 0), constraints=[rod])
    found = zw.constrained_dynamics(m, [0, 0], [0, 0], [1, 0])
    np.testing.assert_allclose(found.acceleration, [1 / 0.85] * 2, rtol=1e-12)


@pytest.mark.parametrize("radius", [0.05, 1e-4])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_thin_rod_on_a_ball_joint_hangs_in_a_pin(radius, dtype):
    """A rod between two fixed points turns about its axis alone, however small its inertia there is."""
    axial = radius**2 / 2
    rod = zw.Body("rod", zw.Ball("joint"), mass=1, com=(0, 0, -0.5), inertia=(1 / 12, 1 / 12, axial))
    pin = zw.Connect("pin", ("rod", (0, 0, -1)), ("world", (0, 0, -1)))
    m = zw.Mechanism("rod", [rod], constraints=[pin], gravity=(9.81, 0, 0))
    fast = zw.compile(m, dtype=dtype, threads=1)
    v = fast.step([1, 0, 0, 0], [0, 0, 0], np.zeros(3), step=1e-3, integrator="rk4")[1]
    np.testing.assert_allclose(v, 0, atol=1e-6)
    found = zw.constrained_dynamics(m, [1, 0, 0, 0], [0, 0, 0], [0, 0, axial])
    np.testing.assert_allclose(found.acceleration, [0, 0, 1], atol=1e-9)
    np.testing.assert_allclose(np.abs(found.forces["pin"]), [9.81 / 2, 0, 0], atol=1e-9)


@pytest.mark.parametrize("ratio", [1e-5, 1e-2, 1e3])
@pytest.mark.parametrize("inertias", [(100, 1e-7), (1e-7, 100)])
def test_gears_between_very_different_inertias(ratio, inertias):
    """The coupling a = ratio b moves the inertias as one, ratio^2 I_a + I_b at b."""
    wheels = [
        zw.Body(name, zw.Revolute(name, axis=(0, 0, 1)), inertia=(inertia,) * 3)
        for name, inertia in zip("ab", inertias, strict=True)
    ]
    m = zw.Mechanism("gears", wheels, constraints=[zw.JointCoupling("gear", "a", "b", (0, ratio))])
    found = zw.constrained_dynamics(m, [0, 0], [0, 0], [1, 0])
    expected = ratio / (ratio * ratio * inertias[0] + inertias[1])
    rounding = 1e-18 / inertias[0]  # of the free acceleration of a
    np.testing.assert_allclose(found.acceleration, [ratio * expected, expected], rtol=1e-6, atol=rounding)


@pytest.mark.parametrize("coordinate_reduction", [False, True])
def test_a_bead_at_the_centre_of_its_distance_has_no_acceleration(coordinate_reduction):
    slides = tuple(zw.Prismatic(name, axis=axis) for name, axis in zip("xyz", np.eye(3), strict=True))
    distance = zw.Distance("string", ("bead", (0, 0, 0)), ("world", (0, 0, 0)), 1.0)
    m = zw.Mechanism("bead", [zw.Body("bead", slides, mass=0.5)], constraints=[distance])
    zero, how = np.zeros(3), {"coordinate_reduction": coordinate_reduction}
    with pytest.raises(SolveError, match="'string' are not finite"):
        zw.constrained_dynamics(m, zero, zero, zero, **how)
    with pytest.warns(SimulationWarning) as warned:
        assert zw.simulate(m, zero, duration=0.1, step=0.01, **how).status.values[0]
    assert "world 0 stopped at t = 0 s" in str(warned[-1].message)
    with pytest.raises(SolveError, match="its accelerations are no numbers"):
        zw.trim(m, zero)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_constraint_whose_gradient_vanishes_allows_motion_along_each_of_its_branches(dtype):
    """x z = 0 at its double point: at rest nothing constrains, and along x a body moves as if free."""
    x, z = sp.symbols("x z")
    bodies = [
        zw.Body("b", zw.Prismatic("z", axis=(0, 0, 1)), mass=1),
        zw.Body("c", zw.Prismatic("x", axis=(1, 0, 0)), mass=1),
    ]
    m = zw.Mechanism(bodies=bodies, constraints=[zw.Holonomic("cross", x * z)], gravity=(0, 0, 0))
    for h, v in ((0.01, [0, 0]), (0.01, [0, 1]), (0.01, [1, 0])):
        run = zw.compile(m, dtype=dtype).rollout([0, 0], v, np.zeros((10, 2)), steps=10, step=h)
        np.testing.assert_allclose(run.q[-1], 0.1 * np.array(v), atol=1e-6)
