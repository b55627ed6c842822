"""The exact derivatives of a step, against differences of the step itself and closed forms."""

import importlib.resources
from dataclasses import replace
from functools import cache
from pathlib import Path

import mujoco
import numpy as np
import pytest
import sympy as sp

import zwang as zw
from benchmarks.constant_scenes import pinned_chain
from tests.constraint.test_constraint_stabilization import turning_bennett
from zwang.errors import SimulationError
from zwang.integrator.fixed_step import State
from zwang.io.mjcf.read.read_mjcf import read_mjcf
from zwang.simulation.step import step, step_settings

MODELS = Path(__file__).parents[2] / "examples" / "models"
ASSETS = Path(str(importlib.resources.files("gymnasium"))) / "envs" / "mujoco" / "assets"


@cache
def hopper():
    return zw.compile(zw.load(ASSETS / "hopper.xml"))


def displaced(m, q, d):
    return zw.integrate_configuration(m, q, d, 1.0)


def differences(fast, q, v, u, z=(), *, eps=1e-6, **options):
    """The derivatives of a step by Richardson's extrapolation of central differences, in one batch.

    The state after the step is that which `step_derivatives` returns (see `expect_the_step`).
    """
    z = np.asarray(z, float)
    m, nv, nz = fast.mechanism, len(v), len(z)
    n = 2 * nv + nz + len(u)
    steps = np.array([s * e for e in (eps, 2 * eps) for s in (1, -1)])
    D = (steps[:, None, None] * np.eye(n)).reshape(-1, n)
    dq, dv, dz, du = np.split(D, [nv, 2 * nv, 2 * nv + nz], axis=1)
    displaced_q = fast.integrate_configuration(q, dq, 1.0)
    after = fast.step_derivatives(displaced_q, v + dv, u + du, activation=z + dz, **options)

    def central(a, b, width):
        change = np.concatenate(
            [
                fast.difference_configuration(after.q[a], after.q[b]),
                after.v[a] - after.v[b],
                after.activation[a] - after.activation[b],
            ],
            axis=1,
        )
        return change / (2 * width)

    spans = [slice(k * n, (k + 1) * n) for k in range(4)]
    fine, coarse = central(spans[0], spans[1], eps), central(spans[2], spans[3], 2 * eps)
    assert m.nv == nv
    return ((4 * fine - coarse) / 3).T


def expect_the_step(m, found, q, v, u, integrator=None):
    """The state beside the derivatives, in the first world, is that after a step on floats."""
    settings = step_settings(m, m.options.timestep, integrator or m.options.integrator)
    after = step(settings, State(q, v, np.zeros(0)), np.asarray(u, float)).state
    np.testing.assert_allclose(found.q[0], np.array(after.q, float), rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.v[0], np.array(after.v, float), rtol=0, atol=1e-9)


def relative_error(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


def random_states(m, rng, count, lower):
    """States about the home configuration, lowered so that feet and trunk touch the floor."""
    index = 2 if m.nq > m.nv else 1
    for _ in range(count):
        q = displaced(m, np.array(m.home or m.neutral, float), rng.normal(size=m.nv) * 0.2)
        q[index] -= lower * rng.uniform()
        yield q, rng.normal(size=m.nv)


@pytest.mark.parametrize(
    ("model", "lower", "options", "integrator"),
    [
        (ASSETS / "hopper.xml", 0.2, {}, "rk4"),
        (MODELS / "walker2d.xml", 0.2, {"cone": "elliptic"}, "implicitfast"),
        (ASSETS / "half_cheetah.xml", 0.3, {}, "implicit"),
    ],
    ids=lambda x: getattr(x, "stem", None),
)
def test_derivatives_with_contacts_are_the_limit_of_differences(model, lower, options, integrator):
    m = zw.load(model)
    m = m.replace(options=replace(m.options, **options)) if options else m
    fast, rng, errors = zw.compile(m), np.random.default_rng(1), []
    states = [(q, v, rng.uniform(-0.5, 0.5, len(m.inputs))) for q, v in random_states(m, rng, 24, lower)]
    q, v, u = (np.array(x) for x in zip(*states, strict=True))
    settings = {"integrator": integrator}
    found = fast.step_derivatives(q, v, u, **settings)
    expect_the_step(m, found, *states[0], **settings)
    contacts = sum(len(zw.contacts(m, q, v, np.zeros(m.nv))) > 0 for q, v, _ in states)
    for k, state in enumerate(states):
        if not found.switching[k]:
            AB = np.concatenate([found.A[k], found.B[k]], axis=1)
            expected = [differences(fast, *state, eps=eps, **settings) for eps in (1e-5, 1e-6)]
            errors.append(min(relative_error(AB, difference) for difference in expected))
    assert contacts >= 12 and len(errors) >= 20
    assert np.median(errors) < 1e-8 and max(errors) < 1e-6


CONVEX = """<mujoco><option timestep="0.002"/>
<asset><mesh name="hull" vertex="-.1 -.1 -.1  .1 -.1 -.1  0 .15 -.1  0 0 .2"/></asset>
<worldbody><geom type="box" size="1 1 .5" pos="0 0 -.5" friction=".8"/>
<geom type="mesh" mesh="hull" pos=".12 0 .1"/>
<body pos="0 0 .2"><freejoint/><geom type="cylinder" size=".1 .06" mass="1"/></body>
</worldbody></mujoco>"""


@cache
def convex():
    return zw.compile(read_mjcf("model.xml", text=CONVEX))


@pytest.mark.parametrize("model", ["half_cheetah.xml", None])
def test_steps_with_contacts_have_the_sparse_form(model):
    """The fallback is forward mode along every direction, which is several times slower."""
    fast = zw.compile(zw.load(ASSETS / model)) if model else convex()
    m = fast.mechanism
    sparse, direction = (
        fast.count_operations((name, m.options.timestep, "euler"))["total"]
        for name in ("step_jacobian", "step_tangent")
    )
    assert sparse < 0.6 * (2 * m.nv + len(m.inputs)) * direction


def test_derivatives_of_convex_pairs_are_the_limit_of_differences():
    m = convex().mechanism
    fast, rng, errors = convex(), np.random.default_rng(5), []
    states = []
    for _ in range(16):
        d = rng.normal(size=6) * 0.3
        d[:3] = *rng.normal(size=2) * 0.03, rng.uniform(-0.14, -0.1)
        states.append((displaced(m, np.array(m.neutral, float), d), rng.normal(size=6), np.zeros(6)))
    found = fast.step_derivatives(*(np.array(x) for x in zip(*states, strict=True)))
    expect_the_step(m, found, *states[0])
    for k, state in enumerate(states):
        if not found.switching[k]:
            expected = [differences(fast, *state, eps=eps) for eps in (1e-5, 1e-6)]
            errors.append(min(relative_error(found.A[k], difference[:, :12]) for difference in expected))
    assert len(errors) >= 12
    assert np.median(errors) <= 1e-9 and max(errors) <= 1e-7


BELT = """<mujoco><option timestep="0.005" density="300" viscosity="0.5" wind="1 .3 .2"/><worldbody>
<geom type="plane" size="0 0 1" surfacevel=".5 .2 0"/><body pos="0 0 .097"><freejoint/><geom size=".1"/>
<site name="s" pos=".05 0 0"/><body pos="0 0 .2"><joint name="b" axis="0 1 0"/><site name="t" pos=".1 .1 .1"/>
<geom type="ellipsoid" size=".05 .06 .1" fluidshape="ellipsoid"/>
<body pos="0 0 .2"><joint name="c" axis="1 0 0"/>
<geom type="capsule" size=".02 .1"/><site name="u" pos="0 .1 .1"/></body></body></body></worldbody>
<tendon><spatial name="cord" armature=".7" stiffness="20 5 3" damping="1 .5"><site site="t"/><site site="u"/>
</spatial></tendon><actuator><motor joint="b"/></actuator></mujoco>"""


def test_derivatives_of_fluids_tendon_inertia_and_moving_surfaces_are_the_limit_of_differences():
    m, rng = read_mjcf("belt.xml", text=BELT), np.random.default_rng(4)
    fast = zw.compile(m)
    home = np.array(m.neutral, float)
    states = [
        (displaced(m, home, 1e-3 * rng.normal(size=m.nv)), rng.normal(size=m.nv), np.array([0.3]))
        for _ in range(6)
    ]
    batch = [np.array(x) for x in zip(*states, strict=True)]
    found = fast.step_derivatives(*batch)
    expect_the_step(m, found, *states[0])
    assert all(zw.contacts(m, q, v, np.zeros(m.nv)) for q, v, _ in states) and not found.switching.any()
    for state, A, B in zip(states, found.A, found.B, strict=True):
        assert relative_error(np.hstack([A, B]), differences(fast, *state)) < 1e-7


ARMS = """<mujoco><option timestep="0.002" cone="{cone}" integrator="{integrator}" impratio="2"/>
<default><joint damping=".3" armature=".01"/><geom type="capsule" size=".05" friction=".6 .02 .01"/></default>
<worldbody><geom type="plane" size="5 5 1" friction=".7" condim="{ground}"/>
<body pos="0 0 .3"><freejoint/><geom size=".1 .2" condim="{ground}"/>
<body pos="0 .02 .4"><joint type="ball"/><geom fromto="0 0 0 .3 .1 .1" condim="{arms[0]}"/></body>
<body pos="0 -.1 .4"><joint name="m" axis="1 0 0" frictionloss=".1" range="-.5 .05" limited="true"/>
<geom fromto="0 0 0 .3 .15 .13" condim="{arms[1]}"/></body>
</body></worldbody><actuator><motor joint="m" gear="2"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    ("cone", "condim", "integrator"), [("pyramidal", (1, 3), "implicitfast"), ("elliptic", (6, 6), "Euler")]
)
def test_derivatives_of_contacts_between_moving_bodies_are_the_limit_of_differences(cone, condim, integrator):
    """A contact has the larger number of dimensions of its shapes, so that there are contacts with and
    without friction.
    """
    text = ARMS.format(cone=cone, ground=min(condim), arms=condim, integrator=integrator)
    m, states = read_mjcf("arms.xml", text=text), []
    fast, rng, errors, touching = zw.compile(m), np.random.default_rng(6), [], 0
    frictional = set()
    for _ in range(12):
        d = 0.1 * rng.normal(size=m.nv)
        d[3:6] = rng.normal(size=3)  # any attitude: tangents of contact frames depend on it
        states.append((displaced(m, np.array(m.neutral, float), d), 0.5 * rng.normal(size=m.nv), [0.4]))
    found = fast.step_derivatives(*(np.array(x) for x in zip(*states, strict=True)))
    expect_the_step(m, found, *states[0])
    for k, (q, v, u) in enumerate(states):
        contacts = zw.contacts(m, q, v, np.zeros(m.nv))
        touching += any("world" not in contact.bodies for contact in contacts)
        frictional |= {bool(contact.force[1:].any()) for contact in contacts if contact.force[0] > 0}
        if not found.switching[k]:
            expected = [differences(fast, q, v, np.array(u), eps=eps) for eps in (1e-5, 1e-6)]
            AB = np.hstack([found.A[k], found.B[k]])
            errors.append(min(relative_error(AB, difference) for difference in expected))
    assert touching >= 4 and len(errors) >= 8 and frictional == {True, min(condim) > 1}
    assert np.median(errors) < 1e-8 and max(errors) < 1e-6


def test_worlds_are_independent_of_their_neighbours():
    fast = hopper()
    m = fast.mechanism
    states = list(random_states(m, np.random.default_rng(3), 5, 0.2))
    q, v, u = np.array([q for q, _ in states]), np.array([v for _, v in states]), np.full((5, 3), 0.1)
    together = fast.step_derivatives(q, v, u)
    assert [x.shape for x in (together.A, together.B, together.P)] == [(5, 12, 12), (5, 12, 3), (5, 12, 0)]
    for k in range(5):
        alone = fast.step_derivatives(q[k], v[k], u[k])
        assert np.array_equal(alone.A, together.A[k]) and np.array_equal(alone.B, together.B[k])
    after = fast.step(q, v, u)
    assert np.allclose(together.q, after.q, atol=1e-10) and np.allclose(together.v, after.v, atol=1e-8)


def linkage():
    """A slider-crank: a crank, a rod and a slider, closed by a pin."""
    axis = (0, 0, 1)
    bodies = [
        zw.Body("crank", zw.Revolute("crank", axis), mass=1, com=(0.1, 0, 0), inertia=(0.01,) * 3),
        zw.Body(
            "rod", zw.Revolute("rod", axis), "crank", (0.2, 0, 0),
            mass=1, com=(0.3, 0, 0), inertia=(0.05,) * 3,
        ),
        zw.Body("slider", zw.Prismatic("slider", (1, 0, 0)), mass=0.5),
    ]  # fmt: skip
    pin = zw.Connect("pin", ("rod", (0.6, 0, 0)), ("slider", (0, 0, 0)))
    return zw.Mechanism("slider-crank", bodies, gravity=(0, -9.81, 0), constraints=[pin])


def sleigh():
    """A sleigh on a knife edge."""
    edge = zw.NoSideSlip("edge", "sleigh", direction=(0, 1, 0), point=(0.2, 0, 0))
    body = zw.Body("sleigh", zw.Planar("sleigh"), mass=2, com=(0, 0, 0), inertia=(0.1,) * 3)
    return zw.Mechanism("sleigh", [body], gravity=(0, 0, 0), constraints=[edge])


def chain():
    """A chain so long that its matrices are factorised in blocks."""
    return pinned_chain(19)


@pytest.mark.parametrize(
    ("build", "integrator"),
    [(linkage, "euler"), (linkage, "rk4"), (sleigh, "euler"), (sleigh, "rk4"), (chain, "euler")],
)
def test_derivatives_of_hard_constraints_are_the_limit_of_differences(build, integrator):
    m, rng = build(), np.random.default_rng(2)
    fast, options = zw.compile(m, lanes=1), {"integrator": integrator, "step": 1e-3}
    start = np.array(m.home) if m.home else rng.uniform(0.2, 0.6, m.nq)
    q, v = zw.assemble(m, start, rng.normal(size=m.nv))
    u = (0.01 if build is chain else 1) * rng.normal(size=len(m.inputs) or m.nv)
    found = fast.step_derivatives(q, v, u, **options)
    expected = differences(fast, q, v, u, eps=1e-4, **options)
    assert relative_error(np.concatenate([found.A, found.B], axis=1), expected) < 1e-6


@pytest.mark.parametrize("h", [2e-3, 1e-2])
def test_derivatives_of_an_over_constrained_loop_along_its_motion_are_the_rates_after_the_step(h):
    """The equations do not depend on the time: the step takes the rates (v, a) to those after it."""
    m, q, v = turning_bennett()
    found = zw.compile(m).step_derivatives(q, v, np.zeros(3), step=h, integrator="rk4")

    def rates(q, v):
        return np.concatenate([v, zw.constrained_dynamics(m, q, v, np.zeros(3)).acceleration])

    after = rates(found.q, found.v)
    assert np.abs(found.A @ rates(q, v) - after).max() < 1e-7 * np.abs(after).max()


def test_derivatives_by_symbols_and_of_a_pendulum_in_closed_form():
    """theta'' = (tau - m g l sin theta - d omega) / (m l^2), by the semi-implicit Euler method."""
    mass, length = zw.scalar.symbol("m", positive=True), zw.scalar.symbol("l", positive=True)
    joint = zw.Revolute("hinge", (0, 1, 0))
    body = zw.Body("bob", joint, mass=mass, com=(0, 0, -length))
    fast = zw.compile(zw.Mechanism("pendulum", [body]))
    m, l, g, h, q, v, tau = 1.3, 0.7, 9.81, 1e-2, 0.4, 0.9, 0.2
    found = fast.step_derivatives([q], [v], [tau], step=h, integrator="euler", params={"m": m, "l": l})
    a_q, a_u = -g * np.cos(q) / l, 1 / (m * l**2)
    a_m, a_l = -tau / (m**2 * l**2), g * np.sin(q) / l**2 - 2 * tau / (m * l**3)
    A = [[1 + h * h * a_q, h], [h * a_q, 1]]
    names = list(fast.mechanism.symbols)
    by = {"m": a_m, "l": a_l}
    P = [[h * h * by[name] for name in names], [h * by[name] for name in names]]
    assert np.allclose(found.A, A, rtol=1e-12) and np.allclose(
        found.B, [[h * h * a_u], [h * a_u]], rtol=1e-12
    )
    assert np.allclose(found.P, P, rtol=1e-12) and not found.switching


@pytest.mark.parametrize(("rest", "length"), [(("l", "l"), 0.2), (("l", 0.6), 0.6), ((0.05, "l"), 0.2)])
def test_the_rest_length_of_a_tendon_is_a_symbol(rest, length, k=30.0, m=2.0, h=0.1, q=0.7):
    """v' = h k (l - q) / m beyond the rest length l, whose range may have symbols at both ends."""
    l = sp.Symbol("l", positive=True)
    rest = tuple(l if x == "l" else x for x in rest)
    body = zw.Body("b", zw.Prismatic("z", (0, 0, 1)), mass=m)
    tendon = zw.Tendon("t", joints=(("z", 1),), stiffness=k, spring_length=rest)
    fast = zw.compile(zw.Mechanism("spring", [body], tendons=[tendon], gravity=(0, 0, 0)))
    found = fast.step_derivatives([q], [0.0], [0.0], step=h, params={"l": 0.2})
    by_l = k * h / m if rest[1] == l else 0.0
    np.testing.assert_allclose(found.v, [h * k * (length - q) / m], rtol=1e-14)
    np.testing.assert_allclose(found.P, [[h * by_l], [by_l]], rtol=1e-14)


def test_the_radius_of_a_wrap_with_a_side_is_a_symbol(at=([0.4], [1.0], [0.0]), radius=0.06, d=1e-6):
    """Inside a limit, so that the constraint solver is a part of the step."""
    arm = zw.Body("arm", zw.Revolute("hinge", (0, 1, 0)), mass=1.0, com=(0, 0, -0.3), inertia=(0.01,) * 3)
    points = {"start": (0.05, 0, 0.2), "ball": (0, 0, -0.02), "side": (0.12, 0, 0)}
    frames = [zw.Frame(name, "world", p) for name, p in points.items()]
    frames.append(zw.Frame("end", "arm", (0.05, 0, -0.3)))
    wrap = zw.Wrap(1, sp.Symbol("r", positive=True), side="side")
    tendon = zw.Tendon("t", path=("start", "ball", "end"), wraps=(wrap,), stiffness=40.0, limits=(0.0, 0.45))
    fast = zw.compile(zw.Mechanism("m", [arm], frames=frames, tendons=[tendon]))
    found = fast.step_derivatives(*at, params={"r": radius})
    ends = [np.concatenate(fast.step(*at, params={"r": radius + x})[:2]) for x in (d, -d)]
    assert abs(found.P).max() > 1
    np.testing.assert_allclose(found.P[:, 0], (ends[0] - ends[1]) / (2 * d), rtol=1e-6)
    with pytest.raises(zw.errors.TraceError, match="tendons that wrap around a body at a side \\('t'\\)"):
        fast.forward_dynamics_derivatives(*at, params={"r": radius})


def test_activations_and_free_bodies_are_included():
    text = """<mujoco><option timestep="0.005" integrator="RK4"><flag contact="disable"/></option><worldbody>
      <body name="trunk" pos="0 0 .28"><freejoint/><geom type="box" size=".2 .15 .1" mass="3"/>
        <body pos=".2 0 0"><joint name="arm" type="ball" damping=".1"/><geom type="capsule" size=".05 .1"/>
          <body pos="0 0 .2"><joint name="elbow" axis="0 1 0" range="-4 4"/><geom size=".06"/></body></body>
      </body></worldbody>
      <actuator><general name="lag" joint="elbow" dyntype="filter" dynprm=".05" gainprm="3"/>
        <position name="servo" joint="elbow" kp="20"/></actuator></mujoco>"""
    m = read_mjcf("model.xml", text=text)
    fast, rng = zw.compile(m), np.random.default_rng(4)
    states = []
    for _ in range(6):
        q = displaced(m, np.array(m.home or m.neutral, float), rng.normal(size=m.nv) * 0.15)
        v, z, u = rng.normal(size=m.nv), rng.uniform(size=1), rng.normal(size=2)
        states.append((q, v, u, z))
    q, v, u, z = (np.array(x) for x in zip(*states, strict=True))
    found = fast.step_derivatives(q, v, u, activation=z)
    assert 0 < np.count_nonzero(abs(q[:, -1]) > np.radians(4)) < len(states)  # beyond the limits
    for k, state in enumerate(states):
        expected = [differences(fast, *state, eps=eps) for eps in (1e-5, 1e-6)]
        AB = np.concatenate([found.A[k], found.B[k]], axis=1)
        error = min(relative_error(AB, difference) for difference in expected)
        assert error < 1e-7 or found.switching[k]
    assert np.count_nonzero(found.switching) <= 2


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
@pytest.mark.parametrize(("joint", "option"), [("damping='.2 .3'", ""), ("", "density='300'")])
def test_at_rest_the_slope_of_quadratic_damping_is_the_mean_of_both_sides(joint, option, integrator):
    """c_1 + 2 c_2 |v| in an implicit step has a kink at v = 0; MuJoCo's differences are central ones."""
    text = f"""<mujoco><option integrator='{integrator}' {option}/><worldbody><body>
      <joint axis='0 1 0' {joint}/><geom type='capsule' fromto='0 0 0 .3 0 0' size='.04'/>
      </body></worldbody></mujoco>"""
    still, expected = np.zeros(1), np.zeros((2, 2))
    found = zw.compile(read_mjcf("arm.xml", text=text)).step_derivatives(still, still, still)
    model = mujoco.MjModel.from_xml_string(text)
    mujoco.mjd_transitionFD(model, mujoco.MjData(model), 1e-6, True, expected, None, None, None)
    np.testing.assert_allclose(found.A, expected, atol=1e-7)


def test_a_row_at_its_kink_is_marked():
    """A body pushed at exactly the bound of its dry friction."""
    text = """<mujoco><option gravity="0 0 0"/><worldbody><body>
      <joint type="slide" axis="1 0 0" frictionloss="2"/><geom size=".1" mass="1"/>
      </body></worldbody></mujoco>"""
    fast = zw.compile(read_mjcf("model.xml", text=text))
    below, above, at = (fast.step_derivatives([0.0], [0.0], [force]) for force in (1.0, 50.0, 2.0))
    assert not below.switching and not above.switching
    bound = _force_at_the_bound(fast)
    assert fast.step_derivatives([0.0], [0.0], [bound]).switching
    assert above.B[1, 0] > 10 * abs(below.B[1, 0]) and at.B.shape == (2, 1)


@pytest.mark.parametrize("shape", ["sphere", "box"])
def test_a_contact_that_is_about_to_close_or_open_is_marked(shape):
    """A body that touches the floor of margin 1 mm at the height 0.101 of its centre."""
    text = f"""<mujoco><worldbody><geom type="plane" size="1 1 1" margin="0.001"/><body>
      <joint type="slide" axis="0 0 1"/><geom type="{shape}" size=".1 .1 .1" mass="1"/>
      </body></worldbody></mujoco>"""
    fast = zw.compile(read_mjcf("model.xml", text=text))
    heights = 0.101 + np.array([[-3e-6], [-5e-7], [5e-7], [3e-6]])
    found = fast.step_derivatives(heights, np.zeros((4, 1)), np.zeros((4, 1)))
    assert found.switching.tolist() == [False, True, True, False]


def _force_at_the_bound(fast):
    """The force above which the friction is at its bound, by bisection of the slope of the velocity."""
    low, high = 1.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        slope = fast.step_derivatives([0.0], [0.0], [middle]).B[1, 0]
        low, high = (middle, high) if slope < 1e-3 else (low, middle)
    return low


def rates(fast, q0, v0, u, v, z, control):
    """(dq_dot, v_dot, z_dot) of displaced states, by the step's own accelerations and the chain rule; dq is
    the displacement from a configuration that moves from q0 at v0.
    """
    m, out = fast.mechanism, []
    for du, dv, dz, c in zip(u, v, z, control, strict=True):
        q = displaced(m, q0, du)
        found = fast.constrained_dynamics_derivatives(q, dv, c, activation=dz)
        # dq_dot: the displacement a little later, less that a little earlier
        ends = [
            zw.difference_configuration(m, displaced(m, q, dv * s), displaced(m, q0, v0 * s))
            for s in (1e-5, -1e-5)
        ]
        out.append(np.concatenate([(ends[0] - ends[1]) / 2e-5, found.v_dot, found.z_dot]))
    return np.array(out)


def test_derivatives_of_the_accelerations_are_the_limit_of_differences():
    text = """<mujoco><worldbody><geom type="plane" size="5 5 .1"/>
      <body pos="0 0 .09"><freejoint/><geom type="box" size=".2 .15 .1" mass="3"/>
        <body pos=".2 0 0"><joint name="hinge" axis="0 1 0" frictionloss=".1" damping=".2"/>
        <geom type="capsule" size=".05 .1"/></body></body></worldbody>
      <actuator><general joint="hinge" dyntype="integrator" gainprm="3"/></actuator></mujoco>"""
    m = read_mjcf("model.xml", text=text)
    fast, rng = zw.compile(m), np.random.default_rng(5)
    q = displaced(m, np.array(m.home or m.neutral, float), rng.normal(size=7) * 0.1)
    v, z, u, eps = rng.normal(size=7), np.array([0.3]), np.array([0.2]), 1e-6
    found = fast.constrained_dynamics_derivatives(q, v, u, activation=z)
    D = np.concatenate([np.eye(16), -np.eye(16)]) * eps
    du, dv, dz, dc = np.split(D, [7, 14, 15], axis=1)
    x = rates(fast, q, v, du, v + dv, z + dz, u + dc)
    expected = ((x[:16] - x[16:]) / (2 * eps)).T
    AB = np.concatenate([found.A, found.B], axis=1)
    assert np.allclose(AB[7:], expected[7:], rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    assert np.allclose(AB[:7], expected[:7], atol=1e-4)
    a = zw.constrained_dynamics(m, q, v, np.zeros(7))
    assert a.acceleration.shape == found.v_dot.shape


def test_without_constraints_they_are_those_of_forward_dynamics():
    bodies = [
        zw.Body("a", zw.Revolute("a", (0, 1, 0)), mass=1, com=(0, 0, -0.3), inertia=(0.02,) * 3),
        zw.Body("b", zw.Ball("b"), "a", (0, 0, -0.5), mass=0.5, com=(0.1, 0, -0.2), inertia=(0.01,) * 3),
    ]
    m = zw.Mechanism("pendulum", bodies)
    fast, rng = zw.compile(m), np.random.default_rng(6)
    q = displaced(m, np.array(m.neutral, float), rng.normal(size=4))
    v, tau = rng.normal(size=(2, 4))
    found, free = (
        fast.constrained_dynamics_derivatives(q, v, tau),
        fast.forward_dynamics_derivatives(q, v, tau),
    )
    expected = np.concatenate([free.dq, free.dv, free.dtau], axis=1)
    assert np.allclose(np.concatenate([found.A, found.B], axis=1)[4:], expected, rtol=1e-10, atol=1e-10)


def test_a_step_that_fails_has_no_derivatives():
    """Two constraints that hold one slider at contradicting accelerations; NaN in one world of two."""
    slider = zw.Body("slider", zw.Prismatic("slider", (1, 0, 0)), mass=1)
    other = zw.Body("other", zw.Prismatic("other", (1, 0, 0)), mass=1)
    x, t = zw.scalar.symbol("slider"), zw.scalar.symbol("t")
    held = [zw.Holonomic("still", x), zw.Holonomic("moved", x - t * t)]
    m = zw.Mechanism("contradiction", [slider, other], constraints=held)
    found = zw.compile(m).step_derivatives([0.0, 0.0], [0.0, 0.0], [0.0, 0.0], time=0.0, step=0.01)
    assert np.isnan(found.v).all() and np.isnan(found.A).all() and np.isnan(found.B).all()
    with pytest.raises(SimulationError, match="accelerations are not determined"):
        zw.linearize(m, [0.0, 0.0])

    fast = hopper()
    q = np.stack([np.array(fast.mechanism.neutral, float)] * 2)
    q[0, 0] = np.nan
    both = fast.step_derivatives(q, np.zeros((2, 6)), np.zeros((2, 3)))
    assert np.isnan(both.A[0]).all() and np.isfinite(both.A[1]).all()


NEAR_FLOOR = """<mujoco><worldbody><geom type="plane" size="1 1 .1"/>
<body pos="0 0 .1"><joint type="slide" axis="0 0 1"/><geom type="sphere" size=".1" mass="1"/></body>
<body pos="0 0 2"><joint name="hinge" axis="0 1 0"/><geom type="sphere" size=".1" mass="1" contype="0"
conaffinity="0"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("with_friction", [False, True])
def test_a_contact_that_is_about_to_begin_is_marked_beside_laws_of_friction(with_friction):
    m = read_mjcf("model.xml", text=NEAR_FLOOR)
    if with_friction:
        law = zw.CoulombFriction("law", joint="hinge", coefficient=0.1, radius=0.01)
        m = m.replace(constraints=(*m.constraints, law))
    q = np.tile(np.array(m.home or m.neutral, float), (2, 1))
    q[:, 0] += [5e-7, 1e-3]
    v = np.zeros((2, m.nv))
    v[:, -1] = 1.0
    found = zw.compile(m).step_derivatives(q, v, np.zeros((2, m.nv)), integrator="rk4")
    assert found.switching.tolist() == [True, False]


ADHESIVE = """<mujoco><worldbody><geom name="plate" type="box" size=".5 .5 .5" pos="0 0 -.5"/>
<body name="ball" pos="0 0 .12"><freejoint/><geom type="sphere" size=".1" mass="1" gap=".05" margin=".05"/>
</body></worldbody><actuator><adhesion body="ball" ctrlrange="0 1" gain="2"/></actuator></mujoco>"""


def test_the_kinks_of_adhesive_contacts_in_the_gap_are_marked():
    """Above the middle of a face, and where the nearest point passes from the face to its edge."""
    m = read_mjcf("model.xml", text=ADHESIVE)
    q = np.tile(np.array(m.home or m.neutral, float), (2, 1))
    q[1, 0] = 0.5
    found = zw.compile(m).step_derivatives(q, np.zeros((2, 6)), np.ones((2, 1)))
    assert found.switching.tolist() == [False, True]


DRIVEN = """<mujoco><worldbody><body><joint name="z" type="slide" axis="0 0 1"/><geom size=".1" mass="1"/>
</body></worldbody><actuator><general joint="z" gainprm="20" ctrlrange="0 1" {}/></actuator></mujoco>"""


@pytest.mark.parametrize("control", [0.0, 1.0, 1.5])
@pytest.mark.parametrize(
    "dynamics", ["", 'dyntype="filter" dynprm=".1"', 'dyntype="integrator" actlimited="true" actrange="0 1"']
)
def test_a_control_at_an_end_of_its_range_acts_as_inside_and_beyond_it_not_as_in_mujoco(dynamics, control):
    text = DRIVEN.format(dynamics)
    model, fast = mujoco.MjModel.from_xml_string(text), zw.compile(read_mjcf("model.xml", text=text))
    data, n = mujoco.MjData(model), 2 + model.na
    data.ctrl[:] = control
    A, B = np.zeros((n, n)), np.zeros((n, 1))
    mujoco.mjd_transitionFD(model, data, 1e-6, False, A, B, None, None)
    z = np.zeros(model.na)
    found = fast.step_derivatives([0.0], [0.0], [control], activation=z)
    np.testing.assert_allclose(found.B, B, atol=1e-10)
    np.testing.assert_allclose(found.A, A, atol=1e-10)
    assert found.B.any() == (control <= 1)
    w = np.arange(1.0, n + 1)
    gradient = fast.rollout_gradient(w[None], [0.0], [0.0], [[control]], activation=z)
    np.testing.assert_allclose(gradient.control, w[None] @ B, atol=1e-10)


@pytest.mark.parametrize(
    ("control", "width", "switching"), [(0.3, 0, True), (0.31, 0, False), (0.3, 0.1, False)]
)
def test_a_muscle_whose_activation_is_its_control_is_switching(control, width, switching):
    """It activates and deactivates with different time constants, except in a smooth transition."""
    muscle = zw.Muscle(length_range=(-1, 1), strength=5)
    actuator = zw.Actuator("m", joint="hinge", muscle=muscle, activation=("muscle", (0.01, 0.04, width)))
    body = zw.Body("arm", zw.Revolute("hinge", (0, 1, 0)), mass=1, com=(0, 0, -0.3))
    fast, h = zw.compile(zw.Mechanism("arm", [body], forces=[actuator])), 1e-6

    def after(u):
        return fast.step([0.1], [0.2], [u], activation=[0.3])[2][0]

    found = fast.step_derivatives([0.1], [0.2], [control], activation=[0.3])
    sides = [(after(control + d) - after(control)) / d for d in (h, -h)]
    assert found.switching == switching == (abs(sides[0] - sides[1]) > 0.01)
    assert min(abs(found.B[2, 0] - side) for side in sides) < 1e-4
