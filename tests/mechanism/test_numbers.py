"""Every number of a description is validated when it is built; the error names the number and its bound."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.errors import DescriptionError, ParameterError
from zwang.integrator.adaptive_step import METHODS
from zwang.mechanism import options
from zwang.mechanism.contact_pairs import ContactExclude, ContactPair
from zwang.mechanism.joints import Softness
from zwang.mechanism.options import Keyframe, Options
from zwang.mechanism.tendon_elements import Tendon, TendonCoupling, Wrap
from zwang.simulation.step import STEPPERS

x = sp.Symbol("x")
NO_NUMBER = [
    np.nan, np.inf, -np.inf, 1j, np.complex128(1), "1", b"1", None, True, [1], np.datetime64("2020-01-01"),
    np.timedelta64(1, "ns"), sp.nan, sp.oo, sp.zoo, sp.I, x + sp.I, x * sp.nan, sp.Gt(x, 0), sp.true,
]  # fmt: skip
TRIANGLE = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]

PARTS = {
    "friction of a surface": lambda v: zw.Surface(friction=(v, 0, 0)),
    "solref of a surface": lambda v: zw.Surface(solref=(v, 1)),
    "solimp of a surface": lambda v: zw.Surface(solimp=(0.9, 0.95, v, 0.5, 2)),
    "solmix of a surface": lambda v: zw.Surface(solmix=v),
    "margin of a surface": lambda v: zw.Surface(margin=v),
    "gap of a surface": lambda v: zw.Surface(gap=v),
    "restitution of a surface": lambda v: zw.Surface(hard=True, restitution=v),
    "solref of a softness": lambda v: Softness(solref=(v, 1)),
    "margin of a softness": lambda v: Softness(margin=v),
    "timestep": lambda v: Options(timestep=v),
    "impratio": lambda v: Options(impratio=v),
    "tolerance": lambda v: Options(tolerance=v),
    "friction of contact pair": lambda v: ContactPair("p", ("a", "b"), friction=(1, 1, 1, v, 1)),
    "solref of contact pair": lambda v: ContactPair("p", ("a", "b"), solref=(v, 1)),
    "solreffriction of contact pair": lambda v: ContactPair("p", ("a", "b"), solreffriction=(v, 1)),
    "margin of contact pair": lambda v: ContactPair("p", ("a", "b"), margin=v),
    "radius of sphere": lambda v: zw.Sphere(v),
    "length of capsule": lambda v: zw.Capsule(1, v),
    "y of box": lambda v: zw.Box(1, v, 1),
    "position of sphere": lambda v: zw.Sphere(1, position=(0, v, 0)),
    "color .* of sphere": lambda v: zw.Sphere(1, color=(0, v, 0, 1)),
    "vertices of mesh": lambda v: zw.Mesh(vertices=[(0, 0, v), (1, 0, 0), (0, 1, 0)], faces=[(0, 1, 2)]),
    "scale of mesh": lambda v: zw.Mesh(vertices=TRIANGLE, faces=[(0, 1, 2)], scale=(1, 1, v)),
    "expression of holonomic": lambda v: zw.Holonomic("h", v),
    "rate of pfaffian": lambda v: zw.Pfaffian("p", {"j": 1}, rate=v),
    "coefficients of pfaffian": lambda v: zw.Pfaffian("p", {"j": v}),
    "forces of non-ideal": lambda v: zw.NonIdeal("n", "c", {"j": v}),
    "coefficients of joint coupling": lambda v: zw.JointCoupling("c", "j", "k", (v, 1)),
    "coefficients of tendon coupling": lambda v: TendonCoupling("c", "j", "k", (v, 1)),
    "radius of a wrap": lambda v: Wrap(0, v),
    "damping of tendon": lambda v: Tendon("t", joints={"j": 1}, damping=v),
    "divisor.* of tendon": lambda v: Tendon("t", path=("a", None, "b"), divisors=(v,)),
    "time of keyframe": lambda v: Keyframe("k", time=v),
    "q of keyframe": lambda v: Keyframe("k", q=(v,)),
    "mass of body": lambda v: zw.Body("b", mass=v),
}


@pytest.mark.parametrize("named", PARTS)
def test_values_that_are_not_finite_real_numbers_raise_with_their_name(named):
    for value in NO_NUMBER:
        if (named[:6], repr(value)) in (("expres", "[1]"), ("vertic", "True")):
            continue  # a list of expressions is valid, and NumPy arrays convert True to 1
        with pytest.raises(DescriptionError, match=named):
            PARTS[named](value)


@pytest.mark.parametrize("named", [n for n in PARTS if not n.startswith(("vertices", "expression"))])
def test_numbers_of_other_libraries_are_accepted(named):
    for value in (Fraction(1, 2), np.float32(0.5), sp.Rational(1, 2), np.array(0.5)):
        PARTS[named](value)


BOUNDS = [
    (lambda: zw.Surface(friction=(-1, 0, 0)), "friction of a surface is -1; it must be at least 0"),
    (lambda: zw.Surface(friction=(1,)), "friction of a surface .* must have 3 numbers"),
    (lambda: zw.Surface(solmix=-1), "solmix of a surface is -1; it must be at least 0"),
    (lambda: zw.Surface(condim=2), "condim is 2; it must be 1, 3, 4 or 6"),
    (lambda: zw.Surface(condim=3.0), r"condim is 3\.0; it must be an integer"),
    (lambda: zw.Surface(contype=1.5), r"contype of a surface is 1\.5; it must be an integer"),
    (lambda: zw.Surface(conaffinity="1"), "conaffinity of a surface is '1'; it must be an integer"),
    (lambda: zw.Surface(group=None), "group of a surface is None; it must be an integer"),
    (lambda: zw.Surface(priority=np.nan), "priority of a surface is nan; it must be an integer"),
    (lambda: zw.Surface(hard=1), "hard of a surface is 1; it must be True or False"),
    (lambda: zw.Surface(solref=(0.02, -1)), "both positive, or .*neither positive and not both 0"),
    (lambda: zw.Surface(solref=(-1, 0.5)), "both positive, or .*neither positive and not both 0"),
    (lambda: Softness(solref=(0, 0)), "solref of a softness .*not both 0"),
    (lambda: Softness(solref=(0, 1)), "solref of a softness .*both positive"),
    (lambda: Softness(solref=(0.02,)), "solref of a softness .* must have 2 numbers"),
    (lambda: Softness(solimp=(1.1, 0.95, 0.001, 0.5, 2)), "d0 in solimp .* is 1.1; it must be at most 1"),
    (lambda: Softness(solimp=(0.9, -0.1, 0.001, 0.5, 2)), "d_width in .* is -0.1; it must be at least 0"),
    (lambda: Softness(solimp=(0.9, 0.95, -1, 0.5, 2)), "width in .* is -1; it must be at least 0"),
    (lambda: Softness(solimp=(0.9, 0.95, 0.001, 2, 2)), "midpoint in .* is 2; it must be at most 1"),
    (lambda: Softness(solimp=(0.9, 0.95, 0.001, 0.5, 0.5)), "power in .* is 0.5; it must be at least 1"),
    (lambda: ContactPair("p", ("a", "b"), solimp=(2, 1, 0, 0, 1)), "d0 in solimp of contact pair 'p' is 2"),
    (lambda: ContactPair("p", ("a", "b"), friction=(1, 1)), "friction of contact pair .* 5 numbers"),
    (lambda: ContactPair("p", "ab"), "geometry of contact pair 'p' is 'ab'; give two names"),
    (lambda: ContactExclude(("a", 1)), "bodies of a contact exclusion .* give two names"),
    (lambda: Options(integrator="eulr"), "integrator is 'eulr'; give one of 'euler'"),
    (lambda: Options(integrator=4), "integrator is 4; give one of 'euler'"),
    (lambda: Options(impratio=0), "impratio .* is 0; it must be greater than 0"),
    (lambda: Options(iterations=0), "iterations .* is 0; it must be at least 1"),
    (lambda: Options(iterations=1.5), r"iterations .* is 1\.5; it must be an integer"),
    (lambda: Options(tolerance=-1e-9), "tolerance .* is -1e-09; it must be at least 0"),
    (lambda: Options(timestep=0), "timestep is 0; it must be positive"),
    (lambda: Options(contact="no"), "contact .* is 'no'; it must be True or False"),
    (lambda: Options(disabled=("gravty",)), "disabled contains 'gravty'; the flags are constraint"),
    (lambda: Options(enabled=("gravity",)), "enabled contains 'gravity'; the flags are override"),
    (lambda: Options(cone=1), "cone is 1; give 'pyramidal' or 'elliptic'"),
    (lambda: Options(solver=["newton"]), r"solver is \['newton'\]; give one of 'newton'"),
    (lambda: zw.Sphere(-1), "radius of sphere '' is -1; it must be positive"),
    (lambda: zw.Sphere(1, surface=None), "surface of sphere '' is None; give a zw.Surface"),
    (lambda: zw.Sphere(1, visual_only="yes"), "visual_only of sphere '' is 'yes'; it must be True or False"),
    (lambda: zw.Mesh(vertices=TRIANGLE, faces=[(0, 1, 1.5)]), "faces of mesh .* three integers"),
    (lambda: zw.Mesh(vertices=TRIANGLE, faces=[("0", "1", "2")]), "faces of mesh .* three integers"),
    (lambda: zw.Mesh(vertices=TRIANGLE, faces=[(0, 1, np.nan)]), "faces of mesh .* three integers"),
    (lambda: zw.Mesh(vertices=TRIANGLE, faces=[(0, 1, 1e300)]), "face of mesh .*out of range|integers"),
    (lambda: zw.Mesh(vertices=TRIANGLE, faces=[(0, 1, 3)]), "vertex index out of range; there are 3"),
    (lambda: zw.Mesh(vertices=TRIANGLE, faces=[(0, 1, -1)]), "vertex index out of range"),
    (lambda: zw.Mesh(vertices=TRIANGLE, faces=[(0, 1)]), "faces of mesh .* rows of three"),
    (lambda: zw.Holonomic("h", ()), "expression of holonomic 'h' has 0 numbers; it must have at least 1"),
    (lambda: zw.Holonomic("h", (x, sp.nan)), "expression of holonomic 'h' is nan, which is not a number"),
    (lambda: zw.Connect("c", ("a", (0, 0, 0)), ("b", (0, 0, 0)), softness=1), "softness of connect 'c' is 1"),
    (
        lambda: zw.Weld("w", "a", "b", torque_scale=-1),
        "torque_scale of weld 'w' is -1; it must be at least 0",
    ),
    (
        lambda: Tendon("t", joints={"j": 1}, friction=-1),
        "friction of tendon 't' is -1; it must be at least 0",
    ),
    (lambda: Tendon("t", joints={"j": 1}, limits=(1, 0)), "limits of tendon 't' .*lower must not exceed"),
    (lambda: Wrap(0.5, 1), r"at of a wrap is 0\.5; it must be an integer"),
    (lambda: Wrap(0, 0), "radius of a wrap is 0; it must be greater than 0"),
]


@pytest.mark.parametrize("k", range(len(BOUNDS)))
def test_numbers_out_of_bounds_raise_with_the_bound(k):
    build, words = BOUNDS[k]
    with pytest.raises(DescriptionError, match=words):
        build()


def test_bounds_are_inclusive():
    zw.Surface(friction=(0, 0, 0), solref=(-1000, 0), solimp=(0, 1, 0, 1, 1), solmix=0, contype=-1)
    Softness(solref=(0, -5))
    Options(tolerance=0, iterations=1)


def test_options_accept_every_integrator():
    assert set(options.INTEGRATORS) == {*STEPPERS, *METHODS, "implicit"}
    assert Options(integrator="RK4").integrator == "rk4"


def test_symbols_are_validated_after_substitution():
    body = zw.Body(
        "ball",
        zw.Free("free"),
        mass=1,
        inertia=(1, 1, 1),
        geometry=(zw.Sphere(1, surface=zw.Surface(friction=(x, 0, 0))),),
    )
    m = zw.Mechanism(bodies=[body])
    assert m.symbols == ("x",)
    with pytest.raises(DescriptionError, match="friction of a surface is -1; it must be at least 0"):
        m.subs({"x": -1})
    for value in ("1", 1j, sp.I, sp.nan, None, True, np.datetime64("2020-01-01"), "__import__('os')"):
        with pytest.raises(ParameterError, match="the value of 'x'"):
            m.subs({"x": value})


def test_a_margin_that_is_nan_raises():
    """Comparisons with a margin of NaN are false, so that no contact would be detected."""
    with pytest.raises(DescriptionError, match="margin of a surface is nan; it must be a finite number"):
        zw.Surface(margin=float("nan"))


def test_configurations_of_a_mechanism_are_arrays_of_floats():
    """An array of integers would drop the fraction of a coordinate that is written into it."""
    x = sp.Symbol("x", real=True)
    bodies = [
        zw.Body("a", zw.Revolute("r", (0, 1, 0), reference=1), mass=1, com=(0, 0, -1)),
        zw.Body("b", zw.Ball("s"), mass=1, inertia=(1, 1, 1)),
    ]
    pose = Keyframe("pose", q=(1, 1, 0, 0, 0), v=(0, 0, 0, 1))
    m = zw.Mechanism("m", bodies, home=(2, 1, 0, 0, 0), keyframes=[pose])
    for values in (m.neutral, m.home, m.keyframe("pose").q, m.keyframe("pose").v):
        q = np.array(values)
        q[0] = 0.7
        assert q[0] == 0.7 and tuple(values) == tuple(np.array(values, dtype=int))
    assert zw.Mechanism.from_json(m.to_json()) == m
    symbolic = m.replace(home=(x, sp.Rational(3, 5), 0, sp.Rational(4, 5), 0))
    assert symbolic.home[0] is x and symbolic.home[1].expression == sp.Rational(3, 5)
