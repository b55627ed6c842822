"""Four derivations give the same equations, also for velocities that are not rates of coordinates."""

import random

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.symbolic.machines import X, Y, positive
from zwang.errors import DescriptionError
from zwang.symbolic.equations import equations

METHODS = ("gauss", "newton_euler", "lagrange")
UNIT = [(1, 2, 2, 4), (2, 4, 5, 6), (1, 4, 4, 4), (2, 3, 6, 0)]  # whole quaternions of lengths 5, 9, 7, 7
J, K = positive("J1:4"), positive("K1:4")
m, n, l, g, k = positive("m n l g k")


def ball_pendulum():
    """A heavy top on a ball joint, with a flywheel on it that a motor turns."""
    top = zw.Body("top", zw.Ball("b"), mass=m, com=(l / 2, 0, l), inertia=(*J, 0, 0, sp.Rational(1, 4)))
    wheel = zw.Body("wheel", zw.Revolute("spin", axis=Y), "top", (0, l, l), mass=n, inertia=K)
    return zw.Mechanism(
        "top", (top, wheel), gravity=(0, 0, -g), forces=(zw.Motor("tau", "spin"), zw.Damper("b", k))
    )


def floating_pair():
    """A free body with a second one on a ball, driven by wrenches, with a spring between them."""
    hull = zw.Body("hull", zw.Free("base"), mass=m, com=(0, l, 0), inertia=J)
    arm = zw.Body("arm", zw.Ball("wrist"), "hull", (l, 0, l), mass=n, com=(0, 0, l), inertia=K)
    forces = (zw.Wrench("hull", (1, 0, 2), (0, 1, 0), axes="body", input="thrust"),
              zw.PointSpring(("hull", (0, 0, l)), ("arm", (l, 0, 0)), k, l))  # fmt: skip
    return zw.Mechanism("pair", (hull, arm), gravity=(0, 0, -g), forces=forces)


def rolling_ball():
    """A ball with its mass beside its centre, on a plane without slip: independent velocities."""
    body = zw.Body("ball", zw.Free("base"), mass=m, com=(0, l, 0), inertia=J)
    return zw.Mechanism("ball", (body,), gravity=(0, 0, -g), constraints=(zw.Rolling("floor", "ball", k),))


def ball_with_slides():
    """A slide, a screw and a ball after each other."""
    joint = (
        zw.Prismatic("x", axis=X),
        zw.Screw("y", axis=Y, pitch=l),
        zw.Ball("b"),
    )
    return zw.Mechanism("mixed", (zw.Body("b", joint, mass=m, com=(0, l, 0), inertia=J),), gravity=(0, 0, -g))


MACHINES = {
    "ball": (ball_pendulum, None),
    "free": (floating_pair, None),
    "rolling": (rolling_ball, ["base.wx", "base.wy", "base.wz"]),
    "mixed": (ball_with_slides, None),
}


def exact_point(e, seed):
    """Random rational numbers for all symbols, quaternions of rational unit length."""
    rng = random.Random(seed)
    names = e.mass_matrix.free_symbols | e.right_hand_side.free_symbols | {*e.symbols.q, *e.symbols.u}
    point = {s: sp.Rational(rng.randint(10, 99), 61) for s in sorted(names, key=str)}
    for joint in (j for j in e.mechanism.joints if "qw" in j.joint.coordinates):
        numbers = rng.choice(UNIT)
        length = sp.sqrt(sum(x * x for x in numbers))
        point |= dict(
            zip(e.symbols.q[joint.q.stop - 4 : joint.q.stop], [x / length for x in numbers], strict=True)
        )
    return point


def exact(e, point):
    """Mass matrix and right-hand side to 40 digits, definition by definition."""
    known = dict(point)
    for symbol, expression in e.definitions:
        known[symbol] = expression.xreplace(known).evalf(40)
    _, mass, rhs = e._cse
    return mass.xreplace(known).evalf(40), rhs.xreplace(known).evalf(40)


@pytest.mark.parametrize("name", MACHINES)
def test_four_derivations_agree_where_velocities_are_not_rates_of_coordinates(name):
    make, speeds = MACHINES[name]
    first = equations(make(), speeds, form="cse")
    others = [equations(make(), speeds, method, form="cse") for method in METHODS]
    for seed in (1, 2):
        point = exact_point(first, seed)
        expected = exact(first, point)
        for e in others:
            for x, wanted in zip(exact(e, point), expected, strict=True):
                assert (x - wanted).norm() < 1e-30, (e.method, seed)


def test_a_top_in_expanded_form_is_the_same_expression_by_all_ways():
    top = zw.Mechanism(
        "top", (zw.Body("top", zw.Ball("b"), mass=m, com=(0, 0, l), inertia=J),), gravity=(0, 0, -g)
    )
    first = equations(top, form="expanded")
    wx, wy, _ = first.speeds
    assert sp.expand(first.right_hand_side[2] - (J[0] - J[1]) * wx * wy) == 0  # Euler's third
    for method in METHODS:
        e = equations(top, method=method, form="expanded")
        assert e.mass_matrix == first.mass_matrix and e.right_hand_side == first.right_hand_side, method


AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1), "d": (0, 0.6, 0.8)}
INERTIA = ((2.0, 0.1, -0.2), (0.1, 1.5, 0.3), (-0.2, 0.3, 1.25))


def skew_mechanism(axes, links):
    """Revolute joints about these axes, in one body or in a chain, whose masses are on none of them."""
    if links == 1:
        joints = tuple(zw.Revolute(f"q{k}", axis=AXES[axis]) for k, axis in enumerate(axes))
        bodies = [zw.Body("b0", joints, mass=1, com=(1, 2, 3), inertia=INERTIA)]
    else:
        bodies = [
            zw.Body(f"b{k}", zw.Revolute(f"q{k}", axis=AXES[axis]), parent=f"b{k - 1}" if k else "world",
                    position=(1, 0, 2) if k else (0, 0, 0), mass=1 + k, com=(1, 2, 3), inertia=INERTIA)
            for k, axis in enumerate(axes)
        ]  # fmt: skip
    return zw.Mechanism("skew", bodies, gravity=(1, -2, -9))


@pytest.mark.parametrize("links", ["body", "chain"])
@pytest.mark.parametrize("axes", ["zy", "zx", "yd", "zyx", "xyz", "zxz", "ydx"])
def test_expanded_equations_are_those_of_the_float_reference(axes, links):
    skew = skew_mechanism(axes, 1 if links == "body" else len(axes))
    rng = np.random.default_rng(4)
    q, v = rng.normal(size=(2, len(axes)))
    expected = np.array(zw.mass_matrix(skew, q)), zw.forward_dynamics(skew, q, v, np.zeros(len(axes)))
    for method in ("projection", *METHODS):
        e = equations(skew, method=method, form="expanded")
        at = dict(zip([*e.q, *e.speeds], [*q, *v], strict=True))
        M, f = (np.array(x.xreplace(at).evalf(), float) for x in (e.mass_matrix, e.right_hand_side))
        np.testing.assert_allclose(M, expected[0], atol=1e-10, err_msg=method)
        np.testing.assert_allclose(np.linalg.solve(M, f)[:, 0], expected[1], atol=1e-9, err_msg=method)


def test_lagranges_equations_of_a_free_pair_are_the_float_references():
    numbers = {"m": 1.3, "n": 0.6, "l": 0.4, "g": 9.81, "k": 12.0}
    numbers |= {s.name: 0.1 + 0.05 * i for i, s in enumerate((*J, *K))}
    machine = floating_pair()
    e = equations(machine, method="lagrange")
    rng = np.random.default_rng(4)
    q, v = rng.normal(size=machine.nq), rng.normal(size=machine.nv)
    q[3:7] /= np.linalg.norm(q[3:7])
    q[7:] /= np.linalg.norm(q[7:])
    M, r = e.evaluate(
        numbers | dict(zip(map(str, (*e.q, *e.speeds)), (*q, *v), strict=True)) | {"thrust": 0.0}
    )
    found = np.linalg.solve(M, r)
    expected = zw.forward_dynamics(machine.subs(numbers), q, v, np.zeros(machine.nv))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["projection", *METHODS])
def test_a_joint_may_move_an_armature_alone(method):
    """n theta_ddot = tau - k theta, without a body that has a mass."""
    rotor = zw.Body("rotor", zw.Revolute("theta", axis=Y, armature=n))
    m = zw.Mechanism("m", [rotor], forces=[zw.Motor("tau", "theta"), zw.Spring("theta", k)])
    e = equations(m, method=method)
    (theta,), (tau,) = e.q, e.symbols.inputs.values()
    assert e.mass_matrix[0] == n and sp.simplify(e.right_hand_side[0] - tau + k * theta) == 0
    assert e.generalized_forces["weight"][0] == 0


def test_a_spring_on_a_ball_joint_has_equations_in_the_cse_form():
    k = sp.Symbol("k", positive=True)
    body = zw.Body("b", zw.Ball("j"), mass=1, com=(0, 0, -1), inertia=(0.1, 0.2, 0.3))
    m = zw.Mechanism("m", [body], forces=[zw.Spring("j", k)])
    e = zw.equations(m)
    assert e.form == "cse"
    q, v = [0.8, 0.6, 0, 0], [0.1, 0.2, -0.3]
    M, r = e.evaluate({k: 2.0} | dict(zip((*e.q, *e.speeds), (*q, *v), strict=True)))
    expected = zw.forward_dynamics(m.subs({k: 2.0}), q, v, [0, 0, 0])
    np.testing.assert_allclose(np.linalg.solve(M, r), expected, rtol=1e-10)
    with pytest.raises(DescriptionError, match=r"rotation vector .* of joint 'j'"):
        zw.equations(m, form="expanded")


def test_case_distinctions_that_sympy_cannot_write_are_refused():
    body = zw.Body("b", zw.Revolute("j", axis=(0, 1, 0)), mass=1, com=(0, 0, -1), inertia=(0.1,) * 3)
    frames = [zw.Frame("f", "b", (0.1, 0, -1)), zw.Frame("g", "world", (0.3, 0.2, 0.1))]
    servo = {"gain": (2, 0, 0), "bias": (0, -2, -1), "gear": (0, 0, 0, 0, 1, 0)}
    forces = [zw.Actuator("u", frame="f", reference="g", **servo)]
    m = zw.Mechanism("m", [body], frames=frames, forces=forces)
    with pytest.raises(DescriptionError, match=r"rotation vector .* 'u'"):
        zw.equations(m, form="expanded")
    e = zw.equations(m)
    assert e.form == "cse" and e.mass_matrix.shape == (1, 1)
    with pytest.raises(DescriptionError, match=r"case distinctions.*zw\.compile"):
        _ = e.right_hand_side
