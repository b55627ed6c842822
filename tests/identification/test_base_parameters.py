"""Base parameters: published numbers, combinations known from mechanics, and proof by rank."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.identification.robots import robot
from tests.mechanisms import random_mechanism, random_state
from tests.robot import dh
from zwang.errors import SolveError
from zwang.mechanism.samples import double_pendulum, furuta


@pytest.mark.parametrize(("name", "count"), [("ur10", 36), ("panda", 43)])
def test_the_numbers_of_inertial_base_parameters_are_those_of_the_literature(name, count):
    """Panda: Gaz, Cognetti, Oliva, Robuffo Giordano, De Luca, RA-L 4 (2019) 4147."""
    base = zw.identify.base_parameters(robot(name), kinds="inertia")
    assert len(base) == count and base.gap > 1e9


def test_puma_560_has_36_inertial_base_parameters():
    """Gautier, Khalil (1990)."""
    assert len(zw.identify.base_parameters(dh.arm("puma560"), kinds="inertia")) == 36


@pytest.mark.parametrize("seed", range(3))
def test_the_base_regressor_has_full_rank_and_spans_the_regressor(seed):
    m = random_mechanism(seed)
    base = zw.identify.base_parameters(m)
    states = [random_state(m, 77 * seed + k) for k in range(80)]
    q, v, a = (np.array([s[k] for s in states]) for k in (0, 1, 3))
    Y = zw.identify.regressor(m, q, v, a).reshape(-1, len(base.parameters))
    scale = np.linalg.norm(Y, axis=0)
    scaled = Y / np.where(scale > 0, scale, 1)
    assert np.linalg.matrix_rank(scaled, tol=1e-8) == len(base)
    pi = np.random.default_rng(seed).normal(size=len(base.parameters))
    expected = Y @ pi
    found = Y[:, list(base.independent)] @ base.matrix @ pi
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * abs(expected).max())


def test_the_combinations_of_a_planar_double_pendulum():
    """Point masses on rods of 1 m: the textbook's m1 l1 + m2 l1, m1 l1^2 + m2 l1^2, m2 l2, m2 l2^2."""
    m = double_pendulum(m1=2.0, m2=3.0, l1=0.5, l2=0.7)
    base = zw.identify.base_parameters(m)
    assert base.combinations == (
        "mc_upper_x", "mc_upper_z - 0.5 m_lower", "I_upper_yy + 0.25 m_lower",
        "mc_lower_x", "mc_lower_z", "I_lower_yy",
    )  # fmt: skip
    np.testing.assert_allclose(base.values, [0, -0.5 * 5, 0.25 * 5, 0, -2.1, 1.47], atol=1e-12)
    names = [p.name for p in base.parameters]
    assert base.status(names.index("m_upper")) == "invisible"
    assert base.status(names.index("m_lower")) == "combined"
    assert base.status(names.index("I_lower_yy")) == "alone"
    assert base.status(names.index("I_upper_yy")) == "combined"


def test_armatures_add_what_the_inertia_does_not_contain():
    """The armature of the first joint acts as the inertia about its axis. As the first two axes are
    orthogonal, a spherical inertia of link 2 acts as the armatures of both joints. The others are new.
    """
    m = robot("panda")
    base = zw.identify.base_parameters(m, kinds=("inertia", "armature", "damping", "friction", "offset"))
    first = next(text for text in base.combinations if text.startswith("I_panda_link1_zz"))
    assert first.endswith("+ armature_panda_joint1") and len(base) == 43 + 5 + 21
    assert "base parameters" in str(base) and "invisible: m_panda_link1" in str(base)


def test_a_free_body_shows_all_its_parameters():
    body = zw.Body("box", zw.Free("f"), mass=2, com=(0.1, 0, 0), inertia=(0.1, 0.2, 0.25))
    base = zw.identify.base_parameters(zw.Mechanism("box", (body,)))
    assert len(base) == 10 and not base.dependent and not base.invisible


@pytest.mark.parametrize(("length", "time"), [(1e-6, 1.0), (1e-3, 1e-3), (1e6, 1e6)])
def test_the_combinations_do_not_depend_on_the_units(length, time):
    """A double pendulum on a slider, by hand: the parallel axis theorem with the distance d of the joints."""
    d, names = 0.5 * length, ("upper", "lower")
    bodies = [zw.Body("cart", joint=zw.Prismatic("x", axis=(1, 0, 0)), mass=1)]
    for parent, name, at in (("cart", "upper", (0, 0, 0)), ("upper", "lower", (d, 0, 0))):
        bodies.append(
            zw.Body(name, parent=parent, joint=zw.Revolute(f"at_{name}", axis=(0, 1, 0)), position=at, mass=1,
                    com=(0.2 * length, 0, 0.1 * length), inertia=(0.02 * length**2,) * 3)
        )  # fmt: skip
    m = zw.Mechanism("cart", bodies, gravity=(0, 0, -9.81 * length / time**2))
    base = zw.identify.base_parameters(m, kinds=("inertia", "damping"))
    assert base.combinations == (
        "m_cart + m_upper + m_lower", f"mc_upper_x + {d:.6g} m_lower", "mc_upper_z",
        f"I_upper_yy + {d * d:.6g} m_lower", "mc_lower_x", "mc_lower_z", "I_lower_yy",
        "damping_x", "damping_at_upper", "damping_at_lower",
    )  # fmt: skip
    index = [p.name for p in base.parameters].index
    assert {base.status(index(f"m_{name}")) for name in names} == {"combined"}
    assert base.status(index("I_upper_yy")) == "combined" and base.status(index("mc_lower_x")) == "alone"


def test_the_combinations_of_mechanisms_with_symbols_are_symbolic():
    l1 = sp.Symbol("l1", positive=True)
    base = zw.identify.base_parameters(double_pendulum(m1=sp.Symbol("m1"), l1=l1, l2=sp.Symbol("l2")))
    assert base.combinations[:3] == ("mc_upper_x", "mc_upper_z - l1 m_lower", "I_upper_yy + l1^2 m_lower")
    assert zw.identify.base_parameters(furuta()).combinations[0] == (
        "I_arm_zz + L_r^2 m_pendulum + 2 L_r mc_pendulum_x + I_pendulum_zz"
    )


def test_symbolic_coefficients_are_the_numeric_ones_for_numbers():
    """A planar arm of three links with symbolic lengths."""
    lengths = sp.symbols("a1:4", positive=True)
    m = zw.robot.from_dh(d=[0.3, 0, 0], a=lengths, alpha=[sp.pi / 2, 0, 0], name="arm")
    values = {"a1": 0.3, "a2": 0.7, "a3": 0.2}
    symbolic = zw.identify.base_parameters(m)
    numeric = zw.identify.base_parameters(m.subs(values))
    assert symbolic.independent == numeric.independent and symbolic.invisible == numeric.invisible
    K = sp.Matrix(symbolic.K).subs({x: values[str(x)] for x in lengths})
    np.testing.assert_allclose(np.array(K, dtype=float), numeric.K, atol=1e-7)


def test_errors():
    phi = sp.Symbol("phi", real=True)
    tilted = zw.Body("b", zw.Revolute("j", axis=(0, sp.sin(phi), sp.cos(phi))), parent="a", mass=1)
    first = zw.Body("a", zw.Revolute("i", axis=(0, 0, 1)), mass=1, inertia=(1, 1, 1))
    with pytest.raises(SolveError, match="no polynomials of degree 2 in phi"):
        zw.identify.base_parameters(zw.Mechanism("tilted", (first, tilted)))
    with pytest.raises(SolveError, match="is in doubt"):
        zw.identify.base_parameters(robot("ur10"), tolerance=0.3)
