"""The symbolic backend: exact results, and expressions as data."""

import random

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang import scalar
from zwang.dynamics.crba import crba, mass_matrix_from_jacobians
from zwang.errors import DescriptionError, LoadError, ParameterError
from zwang.mechanism.bodies import Body
from zwang.mechanism.joints import Revolute
from zwang.mechanism.mechanism import Mechanism
from zwang.symbolic import sympy_backend

m_r, m_p, L_r, L_p, g = sp.symbols("m_r m_p L_r L_p g", positive=True)
J1, J2, J3, K1, K2, K3 = sp.symbols("J_r1:4 J_p1:4", positive=True)
x, y = sp.symbols("x y", real=True)


def furuta() -> Mechanism:
    arm = Body("arm", Revolute("theta", axis=(0, 0, 1)), mass=m_r, com=(L_r / 2, 0, 0), inertia=(J1, J2, J3))
    rod = Body("pendulum", Revolute("alpha", axis=(1, 0, 0)), parent="arm", position=(L_r, 0, 0),
               mass=m_p, com=(0, 0, L_p / 2), inertia=(K1, K2, K3))  # fmt: skip
    return Mechanism("furuta", bodies=(arm, rod), gravity=(0, 0, -g))


def test_a_description_with_symbols_survives_json():
    mechanism = furuta()
    again = Mechanism.from_json(mechanism.to_json())
    assert again == mechanism
    assert again.bodies[0].mass.is_positive


EXPRESSIONS = [
    sp.Rational(1, 3) * x**2 + sp.sin(x * y),
    sp.Float("0.1234567890123456789", 30) * x,
    sp.pi / 2 + x,
    sp.sqrt(x**2 + 1),
    sp.Piecewise((x, x > 0), (-y, sp.And(x <= 0, y > 1)), (1, True)),
    sp.Max(x, y) + sp.exp(x),
    sp.atan2(y, x),
    sp.Abs(x) * sp.E,
    sp.Symbol("a/b {", positive=True),
]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_expressions_as_data_come_back_equal(expression):
    assert scalar.from_data(scalar.to_data(expression)) == expression


@pytest.mark.parametrize(
    "tree",
    [
        ["__import__", ["Symbol", "os", {}]],
        ["Symbol", "x", {"real": "exec"}],
        "sin(x)",
        ["Rational", "1", 2],
        ["Symbol", 3, {}],
        [],
    ],
    ids=str,
)
def test_a_document_cannot_smuggle_code(tree):
    text = (
        '{"format": "zwang 1", "value": {"kind": "Mechanism", "gravity": [0, 0, {"expression": '
        '{"sympy": %s}}]}}'
    )
    with pytest.raises(LoadError):
        Mechanism.from_json(text % str(tree).replace("'", '"'))


def test_the_mass_matrix_in_symbols_is_that_in_floats_at_random_rational_points():
    rng = random.Random(4)
    mechanism = furuta()
    q = np.array(sp.symbols("theta alpha", real=True))
    H = crba(mechanism.tree, q)
    for _ in range(3):
        values = {
            s: sp.Rational(rng.randint(50, 90), 31) for s in (*q, m_r, m_p, L_r, L_p, J1, J2, J3, K1, K2, K3)
        }
        numeric = mechanism.subs({str(k): float(v) for k, v in values.items() if k not in q} | {"g": 9.81})
        assert all(type(n) in (int, float) for n in (*numeric.bodies[1].com, numeric.bodies[0].mass))
        exact = np.array([[float(e.subs(values).evalf(30)) for e in row] for row in H])
        np.testing.assert_allclose(
            mass_matrix_from_jacobians(numeric.tree, [float(values[s]) for s in q]), exact, rtol=1e-13
        )


def test_values_for_symbols_may_be_scalars_of_any_backend():
    expression = sp.sin(x) * y + sp.Rational(1, 2)
    assert scalar.substitute(expression, {x: 0, y: 3}) == 0.5
    assert scalar.substitute(expression, {x: sp.pi / 2}) == y + sp.Rational(1, 2)
    assert scalar.substitute(sp.Piecewise((x, x > 1), (y, True)), {x: 0.5, y: 7}) == 7
    with pytest.raises(ParameterError, match="gamma"):
        scalar.substitute(sp.gamma(x), {x: 1.0})


@pytest.mark.parametrize(
    "name", ["sin", "cos", "tan", "asin", "acos", "exp", "log", "sqrt", "absolute", "floor", "sign"]
)
def test_every_primitive_of_one_argument_agrees_with_floats(name):
    primitive = getattr(scalar, name)
    assert abs(float(primitive(x).subs(x, sp.Rational(3, 7))) - primitive(3 / 7)) < 1e-14


@pytest.mark.parametrize("name", ["atan2", "minimum", "maximum", "divide", "copysign", "power"])
def test_every_primitive_of_two_arguments_agrees_with_floats(name):
    primitive = getattr(scalar, name)
    second = sp.Rational(5 if name == "power" else -5, 4)
    value = primitive(x, y).subs({x: sp.Rational(3, 7), y: second})
    assert abs(float(value) - primitive(3 / 7, float(second))) < 1e-14


@pytest.mark.parametrize("name", ["less", "less_equal", "equal", "not_equal"])
def test_comparisons_agree_with_floats(name):
    compare = getattr(scalar, name)
    for second in (sp.Rational(-5, 4), sp.Rational(3, 7), sp.Integer(2)):
        assert bool(compare(x, y).subs({x: sp.Rational(3, 7), y: second})) == compare(3 / 7, float(second))


def test_symbols_are_listed_and_zero_is_seen():
    assert scalar.symbols_of(x * y) == {x, y}
    assert scalar.is_zero(x - x) and not scalar.is_zero(x)
    assert sympy_backend.symbol("q").is_real


@pytest.mark.parametrize("kind", ["Integral", "Sum", "Derivative", "Subs"])
def test_unevaluated_operations_are_refused_and_act_once_evaluated(kind):
    """A bead on the curve y = 4 x^2 at x = 1/4, with the slope 2: x'' = -g slope / (1 + slope^2)."""
    s = sp.Symbol("s")
    curve: sp.Basic = {
        "Integral": sp.Integral(8 * s, (s, 0, x)),
        "Sum": sp.Sum(4 * s * x**2, (s, 0, 1)),
        "Derivative": sp.Derivative(4 * x**3 / 3, x),
        "Subs": sp.Subs(4 * s * s, s, x),
    }[kind]
    with pytest.raises(DescriptionError, match=f"'curve'.* unevaluated {kind}.*doit"):
        zw.Holonomic("curve", y - curve)
    bead = zw.Body("b", (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("y", axis=(0, 1, 0))), mass=2)
    m = zw.Mechanism(
        "bead", [bead], gravity=(0, -10, 0), constraints=[zw.Holonomic("curve", y - curve.doit())]
    )
    assert zw.constrained_dynamics(m, [0.25, 0.25], [0, 0], [0, 0]).acceleration == pytest.approx([-4, -8])
