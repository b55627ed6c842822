"""Non-ideal constraint forces, affine and not affine in the constraint force, in compiled runs against
closed forms: on a wire, in a journal bearing, on a knife edge.
"""

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.symbolic.machines import X, Y, Z
from zwang.errors import NonIdealForceError

x, y, N, phi = sp.symbols("x y N phi", real=True)
vx, vy, rate = sp.symbols("x_dot y_dot phi_dot", real=True)
SPEED = sp.sqrt(vx**2 + vy**2)
MASS, RADIUS, V0, T = 0.4, 0.5, 2.0, 0.3


def run_to_the_end(m, q0, v0, **more):
    run = zw.simulate(m, q0, v0, duration=T, step=1e-3, integrator="rk4", progress=False, **more)
    assert run.attrs["path"] == "compiled" and not run.status.any()
    return run.q.values[0, -1], run.v.values[0, -1]


def ring(drag):
    """A bead on a horizontal ring, N = m v^2 / R, with a drag force against its velocity."""
    slides = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y))
    laws = (
        zw.Holonomic("ring", sp.sqrt(x**2 + y**2) - RADIUS),
        zw.NonIdeal("drag", "ring", {"x": -drag * vx / SPEED, "y": -drag * vy / SPEED}),
    )
    return zw.Mechanism("bead", (zw.Body("bead", slides, mass=MASS),), gravity=(0, 0, 0), constraints=laws)


WIRES = {
    "coulomb": (0.3 * N, V0 / (1 + 0.3 * V0 * T / RADIUS)),
    "magnitude": (0.3 * sp.Abs(-N), V0 / (1 + 0.3 * V0 * T / RADIUS)),
    "square": (0.2 * N**2, (V0**-3 + 3 * 0.2 * MASS * T / RADIUS**2) ** (-1 / 3)),
    "root": (0.2 * sp.sqrt(N), V0 * np.exp(-0.2 * T / np.sqrt(MASS * RADIUS))),
    "with a constant": (0.1 + 0.3 * N, None),
}


@pytest.mark.parametrize("reduction", [False, True])
@pytest.mark.parametrize("law", WIRES)
def test_a_bead_on_a_rough_wire(law, reduction):
    drag, expected = WIRES[law]
    if expected is None:  # m v' = -(a + mu m v^2 / R), whose solution is a tangent
        a, b = 0.1 / MASS, 0.3 / RADIUS
        root = np.sqrt(a * b)
        expected = np.sqrt(a / b) * np.tan(np.arctan(V0 * np.sqrt(b / a)) - root * T)
    _, v = run_to_the_end(ring(drag), [RADIUS, 0], [0, V0], coordinate_reduction=reduction)
    assert np.linalg.norm(v) == pytest.approx(expected, rel=1e-7)


def test_a_pendulum_with_friction_in_its_journal_bearing():
    """Friction torque mu r N with N = m l sqrt(w^4 + w'^2): I w' = -c sqrt(w^4 + w'^2), c = mu r m l."""
    l, r, mu, inertia, w0 = 0.3, 0.05, 0.2, 0.02, 4.0
    joints = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y), zw.Revolute("phi", axis=Z))
    body = zw.Body("body", joints, mass=MASS, com=(l, 0, 0), inertia=(inertia,) * 3)
    pin = zw.Connect("pin", ("body", (0, 0, 0)), ("world", (0, 0, 0)))
    rough = zw.NonIdeal("journal", "pin", {"phi": -mu * r * N * sp.sign(rate)})
    m = zw.Mechanism("journal", (body,), gravity=(0, 0, 0), constraints=(pin, rough))
    c, whole = mu * r * MASS * l, inertia + MASS * l**2
    k = c / np.sqrt(whole**2 - c**2)
    q, v = run_to_the_end(m, [0, 0, 0], [0, 0, w0])
    assert v[2] == pytest.approx(w0 / (1 + k * w0 * T), rel=1e-8)
    assert q[2] == pytest.approx(np.log(1 + k * w0 * T) / k, rel=1e-8)
    found = zw.constrained_dynamics(m, [0, 0, 0], [0, 0, w0], np.zeros(3))
    expected = MASS * l * w0**2 * np.array([-1, -k, 0])  # the mass times its acceleration
    np.testing.assert_allclose(found.forces["pin"], expected, rtol=1e-9, atol=1e-12)


def test_a_knife_edge_with_friction():
    """The lateral force is N = m v w and the friction mu N acts along the edge: v = v0 exp(-mu w t)."""
    joints = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y), zw.Revolute("phi", axis=Z))
    body = zw.Body("body", joints, mass=MASS, inertia=(0.1,) * 3)
    forward = vx * sp.cos(phi) + vy * sp.sin(phi)
    drag = -0.3 * N * sp.sign(forward)
    rough = zw.NonIdeal("rough", "edge", {"x": drag * sp.cos(phi), "y": drag * sp.sin(phi)})
    edge = zw.NoSideSlip("edge", "body", direction=Y)
    m = zw.Mechanism("skate", (body,), gravity=(0, 0, 0), constraints=(edge, rough))
    _, v = run_to_the_end(m, [0, 0, 0], [V0, 0, 1.5])
    assert np.hypot(v[0], v[1]) == pytest.approx(V0 * np.exp(-0.3 * 1.5 * T), rel=1e-9)
    assert v[2] == pytest.approx(1.5, rel=1e-12)


def ladder(mu, floor_law=N):
    """A ladder between a rough wall and a rough floor; -phi is its angle to the floor."""
    joints = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y), zw.Revolute("phi", axis=Z))
    body = zw.Body("ladder", joints, mass=1, inertia=(1 / 12,) * 3)
    c, s = sp.cos(phi) / 2, sp.sin(phi) / 2
    laws = (
        zw.Holonomic("floor", y + s),
        zw.Holonomic("wall", x - c),
        zw.NonIdeal("on floor", "floor", {"x": -mu * floor_law, "phi": s * mu * floor_law}),
        zw.NonIdeal("on wall", "wall", {"y": mu * N, "phi": -c * mu * N}),
    )
    return zw.Mechanism("ladder", (body,), gravity=(0, -9.81, 0), constraints=laws)


def balance(mu, angle, w):
    """(x'', y'', phi'', N floor, N wall) by Newton and Euler, one linear system."""
    c, s = np.cos(angle) / 2, np.sin(angle) / 2
    J = np.array([[0, 1, c], [1, 0, s]])
    friction = np.array([[-mu, 0, s * mu], [0, mu, -c * mu]])
    A = np.block([[np.diag([1, 1, 1 / 12]), -(J + friction).T], [J, np.zeros((2, 2))]])
    return np.linalg.solve(A, [0, -9.81, 0, s * w * w, -c * w * w])


@pytest.mark.parametrize("mu", [0.1, 0.4])
def test_two_coupled_friction_laws(mu):
    angle, w = -1.0, 0.5
    q, v = (
        [np.cos(angle) / 2, -np.sin(angle) / 2, angle],
        np.array([-np.sin(angle) / 2, -np.cos(angle) / 2, 1]) * w,
    )
    *a, floor, wall = balance(mu, angle, w)
    found = zw.constrained_dynamics(ladder(mu), q, v, np.zeros(3))
    np.testing.assert_allclose(found.acceleration, a, rtol=1e-10)
    np.testing.assert_allclose([found.forces["floor"][0], found.forces["wall"][0]], [floor, wall], rtol=1e-10)
    ends = [
        zw.simulate(
            ladder(mu), q, v, duration=0.03, step=5e-3, integrator="rk4", compiled=compiled, progress=False
        ).v
        for compiled in (True, False)
    ]
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-9)


def test_a_coupled_law_that_is_not_affine():
    """With friction mu N^2 at the floor the two forces solve a quadratic system, whose residual is
    checked.
    """
    angle, mu = -1.0, 0.01
    q = [np.cos(angle) / 2, -np.sin(angle) / 2, angle]
    found = zw.constrained_dynamics(ladder(mu, N**2), q, np.zeros(3), np.zeros(3))
    floor, wall = found.forces["floor"][0], found.forces["wall"][0]
    ax, ay, aa = found.acceleration
    c, s = np.cos(angle) / 2, np.sin(angle) / 2
    force = [
        wall - mu * floor**2,
        floor + mu * wall - 9.81,
        c * floor + s * wall + s * mu * floor**2 - c * mu * wall,
    ]
    np.testing.assert_allclose([ax, ay, aa / 12], force, atol=1e-10)
    np.testing.assert_allclose([ay + c * aa, ax + s * aa], 0, atol=1e-10)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_law_without_a_solution_is_an_error_that_names_the_constraint():
    with pytest.raises(NonIdealForceError, match=r"'ring'.*smooth in N"):
        zw.constrained_dynamics(ring(10 + N + sp.sqrt(1 - N)), [RADIUS, 0], [0, V0], np.zeros(2))


@pytest.mark.parametrize("reduction", [False, True, ["x"]])
@pytest.mark.parametrize("scale", [1, 2, 10])
def test_redundant_rows_share_a_load_whatever_their_scale(scale, reduction):
    """A block on the floors y = 0 and scale y = 0: each row carries half of the weight, and friction on the
    first one, mu N, decelerates the block by mu g / 2.
    """
    slides = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y))
    floors = (zw.Holonomic("floor", y), zw.Holonomic("again", scale * y))
    friction = zw.NonIdeal("friction", "floor", {"x": -0.3 * N * sp.sign(vx)})
    block = zw.Body("block", slides, mass=2)
    m = zw.Mechanism("block", [block], gravity=(0, -9.81, 0), constraints=[*floors, friction])
    found = zw.constrained_dynamics(m, [0, 0], [1, 0], [0, 0], coordinate_reduction=reduction)
    np.testing.assert_allclose(found.acceleration, [-0.3 * 9.81 / 2, 0], rtol=1e-9, atol=1e-12)
    forces = [found.forces[name][0] for name in ("floor", "again")]
    np.testing.assert_allclose(forces, [9.81, 9.81 / scale], rtol=1e-9)
    if scale == 2:
        v = run_to_the_end(m, [0, 0], [1, 0], coordinate_reduction=reduction)[1]
        np.testing.assert_allclose(v, [1 - 0.3 * 9.81 / 2 * T, 0], rtol=1e-9, atol=1e-12)
