"""The functions of formulas against SymPy's values of 30 digits, on floats and compiled, with their
derivatives.
"""

import math

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang import scalar
from zwang.algebra.dual import Dual, SecondOrder
from zwang.compiler.derivatives.differentiate import vjp
from zwang.compiler.frontend.trace import trace
from zwang.compiler.pipeline import optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.errors import DescriptionError, ParameterError

x = sp.Symbol("x", real=True)
ODD = [-2.75, -1.0, -0.75, -(2.0**-10), 2.0**-30, 0.25, 3.0]
AROUND = [*ODD, 0.0]
POINTS = {
    **dict.fromkeys((sp.sinh, sp.cosh, sp.tanh, sp.sech, sp.asinh, sp.sec, sp.sinc), AROUND),
    **dict.fromkeys((sp.csch, sp.coth, sp.csc, sp.cot), ODD),
    sp.acosh: [1 + 1e-9, 1.25, 3.0, 1e10], sp.atanh: [-0.75, 2.0**-30, 0.0, 0.25, 1 - 1e-9],
    **{f: [-2.75, -0.25, 0.25, 3.5] for f in (sp.Heaviside, sp.ceiling, sp.frac)},
}  # fmt: skip
FUNCTIONS = {f.__name__: f for f in POINTS}


def parts_of(number, kind):
    return (number.value, number.derivative) if type(number) is kind else (number, 0)


def exact(expression, at):
    """The value of an expression of x, as a limit where it has a removable singularity."""
    value = expression.subs(x, sp.Rational(at)) if at or not expression.has(1 / x) else expression.limit(x, 0)
    return float(value.evalf(30))


@pytest.fixture(scope="module")
def compiled():
    """The values and the derivatives, by reverse mode, of all functions at each of their points."""
    cases = [(f, at) for f, points in POINTS.items() for at in points]

    def values(p):
        found = [scalar.substitute(f(x), {x: p[k]}) for k, (f, _) in enumerate(cases)]
        return {"value": found, "slope": vjp(found, p, [1] * len(found))}

    def evaluate(dtype):
        program = trace(values, {"p": (len(cases),)})
        fast = CompiledFunction(optimise(program), dtype=dtype, threads=1, cache=False)
        found = fast(np.array([at for _, at in cases], dtype))
        return {(f, at): (a, b) for (f, at), a, b in zip(cases, *found, strict=True)}

    return {dtype: evaluate(dtype) for dtype in ("float64", "float32")}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_slopes_on_floats_and_compiled(name, compiled):
    f = FUNCTIONS[name]
    slope = (
        sp.Integer(0) if f in (sp.Heaviside, sp.ceiling) else sp.S(1) if f is sp.frac else sp.diff(f(x), x)
    )
    for at in POINTS[f]:
        right, right_slope = exact(f(x), at), exact(slope, at)
        assert scalar.substitute(f(x), {x: at}) == pytest.approx(right, rel=1e-15, abs=0)
        assert parts_of(scalar.substitute(f(x), {x: Dual(at, 1.0)}), Dual) == pytest.approx(
            (right, right_slope), rel=3e-15, abs=1e-16
        )
        for dtype, rel in (("float64", 2e-15), ("float32", 1e-6)):
            if dtype == "float32" and float(np.float32(at)) != at:
                continue
            assert compiled[dtype][f, at] == pytest.approx((right, right_slope), rel=rel, abs=rel / 100)


@pytest.mark.parametrize("name", ["sinh", "cosh", "tanh", "sech", "asinh", "sinc"])
def test_second_derivatives_also_at_zero(name):
    f = FUNCTIONS[name]
    for at in (0.0, 1e-3, -0.75, 1.0, 2.5):
        found = scalar.substitute(f(x), {x: SecondOrder(Dual(at, 1.0), 1)}).derivative.derivative
        right = sp.diff(f(x), x, 2) if at or f is not sp.sinc else -sp.Rational(1, 3) + 0 * x
        assert found == pytest.approx(exact(right, at), rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("at", [30.0, -800.0, 1e5, -1e300])
def test_bounded_functions_and_their_slopes_far_away(at):
    side = math.copysign(1, at)
    bounded = {sp.tanh: side, sp.coth: side, sp.sech: 0, sp.csch: 0, sp.sinc: 0, sp.Heaviside: (1 + side) / 2}
    for f, limit in bounded.items():
        found = scalar.substitute(f(x), {x: SecondOrder(Dual(at, 1.0), Dual(1.0, 0.0))})
        parts = [part for half in parts_of(found, SecondOrder) for part in parts_of(half, Dual)]
        assert parts == pytest.approx([limit, 0, 0, 0], abs=1 / abs(at) + 1e-12)


def test_the_step_at_zero():
    for at_zero, f in ((0.5, sp.Heaviside(x)), (0, sp.Heaviside(x, 0)), (2, sp.Heaviside(x, 2))):
        assert [scalar.substitute(f, {x: at}) for at in (-1.0, 0.0, 1.0)] == [0, at_zero, 1]


def test_a_function_that_is_not_supported_is_refused_with_the_formula():
    supported = "supported are Abs, .*Heaviside, .*Piecewise, .*tanh"
    with pytest.raises(DescriptionError, match=f"'curve' .* the function erf; {supported}"):
        zw.Holonomic("curve", sp.Symbol("z") - sp.erf(x))
    with pytest.raises(DescriptionError, match=f"'drag' .* the function zeta; {supported}"):
        zw.NonIdeal("drag", "curve", {"x": sp.Piecewise((sp.zeta(x), x > 2), (x, True))})
    assert zw.Holonomic("curve", sp.Symbol("z") - x * sp.erf(2))  # a number
    with pytest.raises(ParameterError, match=f"'m' is erf.* the function erf; {supported}"):
        zw.Mechanism("b", [zw.Body("b", zw.Prismatic("z"), mass=sp.Symbol("m"))]).subs({"m": sp.erf(x)})


def bead(name, *constraints):
    joints = zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("z", axis=(0, 0, 1))
    return zw.Mechanism(name, [zw.Body("b", joints, mass=2)], gravity=(0, 0, -10), constraints=constraints)


def test_a_bead_on_a_catenary():
    """On z = a cosh(x/a), x'' = -(g s + x_dot^2 s c/a)/(1 + s^2) with s = sinh(x/a) and c = cosh(x/a)."""
    a, at, rate = 0.5, 0.25, 1.5
    m = bead("catenary", zw.Holonomic("curve", sp.Symbol("z") - a * sp.cosh(x / a)))
    s, c = math.sinh(at / a), math.cosh(at / a)
    right = -(10 * s + rate**2 * s * c / a) / (1 + s * s)
    found = zw.constrained_dynamics(m, [at, a * c], [rate, rate * s], [0, 0]).acceleration
    assert found == pytest.approx([right, right * s + rate**2 * c / a], rel=1e-12)
    assert zw.Mechanism.from_json(m.to_json()) == m
    for form in ("expanded", "cse"):
        text = zw.equations(m, form=form).text()
        assert "sinh(" in text and "exp" not in text


def test_regularised_friction_on_a_ring():
    """A bead on a ring without gravity: v_dot = -mu v^2/r while tanh(v/eps) is 1."""
    y = sp.Symbol("z", real=True)
    N, vx, vy = sp.symbols("N x_dot z_dot", real=True)
    r, mu, eps, v0, T = 0.5, 0.25, 1e-3, 3.0, 0.02
    drag = mu * N * sp.tanh((x * vy - y * vx) / r / eps)
    ring = zw.Holonomic("ring", sp.sqrt(x**2 + y**2) - r)
    m = bead("ring", ring, zw.NonIdeal("drag", "ring", {"x": drag * y / r, "z": -drag * x / r}))
    m = m.replace(gravity=(0, 0, 0))
    run = zw.simulate(m, [r, 0], [0, v0], duration=T, step=1e-4, integrator="rk4", progress=False)
    assert math.hypot(*run.v.values[0, -1]) == pytest.approx(v0 / (1 + mu * v0 * T / r), rel=1e-10)
