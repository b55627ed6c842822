"""The gradient over a rollout, against differences of the rollout and the chained derivatives of steps."""

import importlib.resources
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.errors import ShapeError
from zwang.io.mjcf.read.read_mjcf import read_mjcf

MODELS = Path(__file__).parents[2] / "examples" / "models"
ASSETS = Path(str(importlib.resources.files("gymnasium"))) / "envs" / "mujoco" / "assets"


def loss_and_cotangents(fast, goal):
    """|v|^2 / 2 + |q - goal|^2 / 2 over all steps, q by the displacement from the goal."""

    def loss(run):
        dq = fast.difference_configuration(run[0], goal)
        return 0.5 * (dq**2).sum(axis=(-1, -2)) + 0.5 * (run[1] ** 2).sum(axis=(-1, -2))

    return loss, lambda run: np.concatenate([run[0] - goal, run[1]], axis=-1)


JUMPER = """<mujoco><option timestep="0.004" integrator="RK4"/><worldbody><geom type="plane" size="5 5 1"/>
<body pos="0 0 .42"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
<geom size=".1" mass="2"/><body><joint name="hip" axis="0 1 0" range="-20 20" damping=".5" armature=".1"/>
<geom type="capsule" fromto="0 0 0 0 0 -.35" size=".05" mass="1"/></body></body></worldbody>
<actuator><motor joint="hip" gear="20"/></actuator></mujoco>"""


def jumper():
    """A body in the plane x, z with a leg that touches the floor."""
    return read_mjcf("jumper.xml", text=JUMPER)


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_the_gradient_is_the_limit_of_differences_in_many_worlds(integrator):
    m = jumper() if integrator == "rk4" else zw.load(MODELS / "walker2d.xml")
    fast, rng, steps, nu = zw.compile(m), np.random.default_rng(1), 12, len(m.inputs)
    q0 = np.array(m.home or m.neutral, float) + rng.normal(size=(3, m.nv)) * 0.1
    q0[:, 1] -= 0.12
    v0, u = rng.normal(size=(3, m.nv)), rng.uniform(-0.5, 0.5, (3, steps, nu))
    loss, cotangents = loss_and_cotangents(fast, np.zeros(m.nq))
    found = fast.rollout_gradient(cotangents, q0, v0, u, integrator=integrator)
    assert found.start.shape == (3, 2 * m.nv) and found.control.shape == (3, steps, nu)

    def total(dq=0.0, dv=0.0, du=0.0):
        return loss(fast.rollout(q0 + dq, v0 + dv, u + du, steps=steps, integrator=integrator))

    for _ in range(3):
        dq, dv, du = rng.normal(size=(3, m.nv)), rng.normal(size=(3, m.nv)), rng.normal(size=u.shape)
        eps = 1e-6
        slope = (total(eps * dq, eps * dv, eps * du) - total(-eps * dq, -eps * dv, -eps * du)) / (2 * eps)
        ours = (found.start * np.concatenate([dq, dv], axis=1)).sum(axis=1) + (found.control * du).sum((1, 2))
        usable = ~found.switching.any(axis=1)
        assert usable.sum() >= 2
        assert np.allclose(ours[usable], slope[usable], rtol=1e-5)
    blocks = []

    def in_blocks(run, span):
        blocks.append((span.start, span.stop))
        return cotangents(run)

    again = fast.rollout_gradient(in_blocks, q0, v0, u, integrator=integrator, checkpoints=True)
    assert blocks == [(9, 12), (6, 9), (3, 6), (0, 3)] and again.q.shape == (3, 1, m.nq)
    for x, y in zip(again[3:], found[3:], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(again.v[:, 0], found.v[:, -1], rtol=1e-12, atol=1e-12)
    if integrator == "euler":
        alone = fast.rollout_gradient(cotangents, q0[1], v0[1], u[1], integrator=integrator)
        assert np.allclose(alone.start, found.start[1], rtol=1e-12, atol=1e-12)


def test_the_gradient_by_symbols_of_a_falling_mass_in_closed_form():
    """z' = z + h v, v' = v + h (F / m - g): the height after n Euler steps is known."""
    mass = zw.scalar.symbol("m", positive=True)
    body = zw.Body("ball", zw.Prismatic("z", (0, 0, 1)), mass=mass)
    fast = zw.compile(zw.Mechanism("fall", [body]))
    n, h, force, m = 20, 0.01, 3.0, np.array([1.0, 2.5])
    g = np.zeros((2, n, 2))
    g[:, -1, 0] = 1
    u = np.full((2, n, 1), force)
    found = fast.rollout_gradient(g, np.zeros((2, 1)), np.zeros((2, 1)), u, step=h, params={"m": m})
    by_force = [h * h * (n - k) / m for k in range(n)]
    assert np.allclose(found.start, [[1, n * h]] * 2) and np.allclose(
        found.control[..., 0], np.transpose(by_force)
    )
    assert np.allclose(found.parameters[:, 0], -force * h * h * n * (n + 1) / 2 / m**2)


HARD_LIMIT = zw.Revolute("h", (0, 1, 0), limits=(-0.2, 0.2), limit_softness=None)
BOUNCING = zw.Surface(condim=1, hard=True, restitution=0.8)


@pytest.mark.parametrize(
    ("joint", "laws"),
    [(HARD_LIMIT, []), (zw.Prismatic("z", (0, 0, 1)), []),
     (zw.Revolute("h", (0, 1, 0)), [zw.CoulombFriction("bearing", 0.1, joint="h", radius=0.05)])],
)  # fmt: skip
@pytest.mark.parametrize("checkpoints", [False, True])
def test_those_of_single_precision_are_those_of_double_precision_rounded(joint, laws, checkpoints):
    """With hard limits, impacts and Coulomb friction, whose steps have no derivatives in reverse mode."""
    geometry = [zw.Sphere(0.1, surface=BOUNCING)] if joint.name == "z" else []
    body = zw.Body("arm", joint, mass=1, com=(0.3, 0, 0), inertia=(0.01,) * 3, geometry=geometry)
    floor = [zw.Plane(surface=BOUNCING)] * bool(geometry)
    m = zw.Mechanism("m", [body], geometry=floor, constraints=laws, gravity=(0, 0, 0))
    g, start = np.eye(2)[[0] * 20], ([0.195], [-1.0], np.zeros((20, 1)))
    single, double = (
        zw.compile(m, dtype=dtype).rollout_gradient(g, *start, step=0.01, checkpoints=checkpoints)
        for dtype in ("float32", "float64")
    )
    for name in ("q", "v", "activation", "start", "control", "parameters"):
        found, expected = getattr(single, name), getattr(double, name)
        assert (found.dtype, expected.dtype) == (np.float32, np.float64), name
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    assert np.abs(double.start).max() > 0.1


def test_wrong_cotangents_are_told():
    fast = zw.compile(zw.load(MODELS / "walker2d.xml"))
    with pytest.raises(ShapeError, match=r"cotangents have the shape \(4, 9\); it must be \(4, 18\)"):
        fast.rollout_gradient(np.zeros((4, 9)), np.zeros(9), np.zeros(9), np.zeros((4, 6)))
    with pytest.raises(ShapeError, match=r"control has the shape \(6,\); it must be \(..., steps, 6\)"):
        fast.rollout_gradient(np.zeros((4, 18)), np.zeros(9), np.zeros(9), np.zeros(6))


CONVEX = """<mujoco><option timestep="0.004" cone="elliptic"/>
<worldbody><geom type="plane" size="1 1 .5" friction=".8"/>
<body pos="0 0 .02"><freejoint/><geom type="ellipsoid" size=".1 .08 .06" mass="1"/>
<body pos=".2 0 .1"><joint axis="0 1 0" range="-10 10" frictionloss=".1" damping=".1" armature=".01"/>
<geom type="capsule" size=".02 .1" mass=".3"/></body></body></worldbody>
<actuator><general joint="" dyntype="filter" dynprm=".05" gainprm="2"/></actuator></mujoco>"""


def four_bar():
    text = """<mujoco><option timestep="0.002"/><worldbody>
    <body><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .3" size=".02"/>
    <body pos="0 0 .3"><joint axis="0 1 0" damping=".1"/>
    <geom type="capsule" fromto="0 0 0 .5 0 .1" size=".02"/></body></body>
    <body pos=".5 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .4" size=".02"/></body>
    </worldbody><equality><connect body1="b" body2="c" anchor=".5 0 .1"/></equality></mujoco>"""
    named = text.replace('<body pos="0 0 .3">', '<body name="b" pos="0 0 .3">')
    return read_mjcf("four_bar.xml", text=named.replace('<body pos=".5', '<body name="c" pos=".5'))


def with_activations():
    return read_mjcf("convex.xml", text=CONVEX.replace('joint=""', 'joint="swing"').replace(
        '<joint axis', '<joint name="swing" axis'))  # fmt: skip


def walker():
    m = zw.load(MODELS / "walker2d.xml")
    return m.replace(options=replace(m.options, cone="elliptic"))


@pytest.mark.parametrize("build", [with_activations, four_bar, walker])
def test_the_gradient_is_the_product_of_the_derivatives_of_the_steps(build, integrator="implicitfast"):
    m = build()
    fast, rng, steps, worlds = zw.compile(m), np.random.default_rng(4), 20, 3
    nz = int(build is with_activations)
    home = np.array(m.home or m.neutral, float)
    q0 = np.stack(
        [zw.integrate_configuration(m, home, d, 1.0) for d in rng.normal(size=(worlds, m.nv)) * 0.05]
    )
    v0, z0 = rng.normal(size=(worlds, m.nv)), rng.normal(size=(worlds, nz))
    u = rng.uniform(-0.5, 0.5, (worlds, steps, len(m.inputs) or m.nv))
    g = rng.normal(size=(worlds, steps, 2 * m.nv + nz))
    found = fast.rollout_gradient(g, q0, v0, u, activation=z0, integrator=integrator)
    before = [
        np.concatenate([x0[:, None], x[:, :-1]], axis=1) for x0, x in zip((q0, v0, z0), found, strict=False)
    ]
    one = fast.step_derivatives(*before[:2], u, activation=before[2], integrator=integrator)
    adjoint, by_control = np.zeros((worlds, g.shape[-1])), np.zeros_like(u)
    for k in reversed(range(steps)):
        adjoint = adjoint + g[:, k]
        by_control[:, k] = np.einsum("wij,wi->wj", one.B[:, k], adjoint)
        adjoint = np.einsum("wij,wi->wj", one.A[:, k], adjoint)
    np.testing.assert_allclose(found.start, adjoint, rtol=1e-10, atol=1e-10 * np.abs(adjoint).max())
    np.testing.assert_allclose(found.control, by_control, rtol=1e-10, atol=1e-10 * np.abs(by_control).max())
    np.testing.assert_array_equal(found.switching, one.switching)


@pytest.mark.parametrize("integrator", ["euler", "implicitfast"])
@pytest.mark.parametrize("model", [ASSETS / "hopper.xml", MODELS / "walker2d.xml"], ids=lambda x: x.stem)
def test_the_adjoint_of_a_step_takes_about_as_many_operations_as_the_step(model, integrator):
    """Where the equations of motion are differentiated, and no solution of them."""
    fast = zw.compile(zw.load(model))
    options = fast.step_key(integrator=integrator)[1:]
    adjoint, step = (
        fast.count_operations((name, *options))["total"] for name in ("rollout_adjoint", "step_solution")
    )
    assert 0 < adjoint < 1.1 * step


@pytest.mark.parametrize("pid", [zw.Pid(10, slew_rate=1.0), zw.Pid(10, 20, 0, largest_integral_force=0.5)])
def test_states_of_a_controller_have_the_gradient_of_their_step_size(pid):
    """The step is not that of the options."""
    servo = zw.Actuator("servo", joint="hinge", pid=pid)
    body = zw.Body("arm", zw.Revolute("hinge", (0, 1, 0)), mass=1, com=(0, 0, -0.3))
    fast = zw.compile(zw.Mechanism("arm", [body], forces=[servo]))
    u = np.array([[0.3], [0.305], [0.5], [0.505], [0.2], [0.21]])
    start, ends = (np.zeros(1), np.zeros(1)), np.zeros((len(u), 3))
    ends[-1, :2] = 0.3, 1.0

    def value(u, z):
        run = fast.rollout(*start, u, steps=len(u), step=0.01, activation=z)
        return ends[-1, :2] @ np.concatenate([run.q[-1], run.v[-1]])

    z = np.array([0.01])
    found = fast.rollout_gradient(ends, *start, u, activation=z, step=0.01)
    e = 1e-6
    by_z = (value(u, z + e) - value(u, z - e)) / (2 * e)
    by_u = [(value(u + d, z) - value(u - d, z)) / (2 * e) for d in e * np.eye(len(u))[:, :, None]]
    np.testing.assert_allclose(found.start[2], by_z, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.control[:, 0], by_u, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("softness", [None, zw.Softness()])
def test_prescribed_motion_is_differentiated_from_a_time_of_each_world(softness):
    """A pendulum on a cart that moves by x = sin(3 t) / 5. Where this constraint is hard, the gradient is by
    A, B and P, else in reverse mode.
    """
    x, t = sp.Symbol("x", real=True), sp.Symbol("t", real=True)
    cart = zw.Body("cart", zw.Prismatic("x", (1, 0, 0)), mass=1)
    bob = zw.Body(
        "bob", zw.Revolute("a", (0, 1, 0)), parent="cart", mass=zw.scalar.symbol("m"), com=(0, 0, -0.5)
    )
    drive = zw.Holonomic("drive", x - sp.sin(3 * t) / 5, softness=softness)
    m = zw.Mechanism("driven", [cart, bob], constraints=[drive])
    fast, rng, steps, mass = zw.compile(m), np.random.default_rng(7), 7, np.array([1.0, 2.0, 0.5])
    start = np.array([0.0, 0.4, 1.3])
    q0 = np.stack([np.sin(3 * start) / 5, [0.3, 0.5, -0.2]], axis=1)
    v0 = np.stack([0.6 * np.cos(3 * start), [1.0, 2.0, -1.0]], axis=1)
    u, g = rng.normal(size=(3, steps, 2)), rng.normal(size=(3, steps, 4))
    options = {"step": 0.01, "time": start}

    def loss(s):
        run = fast.rollout(q0 + s * dx[:2], v0 + s * dx[2:], u + s * du, steps=steps,
                           params={"m": mass + s}, **options)  # fmt: skip
        return (np.concatenate([run.q, run.v], axis=-1) * g).sum((1, 2))

    dx, du, eps = rng.normal(size=4), rng.normal(size=u.shape), 1e-7
    slope = (loss(eps) - loss(-eps)) / (2 * eps)
    for checkpoints in (False, True):
        found = fast.rollout_gradient(g, q0, v0, u, params={"m": mass}, checkpoints=checkpoints, **options)
        along = found.start @ dx + (found.control * du).sum((1, 2)) + found.parameters[:, 0]
        np.testing.assert_allclose(along, slope, rtol=1e-5)
    directions = {"start_direction": dx[None], "control_direction": du[:, None], "parameter_direction": [[1]]}
    found = fast.rollout_tangents(q0, v0, u, params={"m": mass}, **directions, **options)
    np.testing.assert_allclose((found.tangents[:, 0] * g).sum((1, 2)), slope, rtol=1e-5)
    for function in (fast.rollout_gradient, fast.rollout_tangents):
        given = (g, q0, v0, u) if function == fast.rollout_gradient else (q0, v0, u)
        with pytest.raises(
            ShapeError, match=r"'time' has the leading shape \(2,\), which does not broadcast"
        ):
            function(*given, params={"m": mass}, **{**options, "time": [0, 1]})
