"""Kinematics and dynamics give the same results on floats, traced values and symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.mechanisms import random_mechanism, random_state
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.pipeline import optimise
from zwang.dynamics import aba, crba, energy, rnea
from zwang.dynamics import forward_dynamics as dynamics
from zwang.dynamics import forward_dynamics_crba as by_mass_matrix
from zwang.kinematics import configuration, jacobians, poses

FUNCTIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "forward_dynamics_crba": ("q v tau", by_mass_matrix.forward_dynamics_crba),
    "aba": ("q v tau", aba.aba),
    "free_accelerations": ("q v tau", dynamics.free_accelerations),
    "rnea": ("q v a", rnea.rnea),
    "bias_forces": ("q v", rnea.bias_forces),
    "crba": ("q", crba.crba),
    "mass_matrix_from_jacobians": ("q", crba.mass_matrix_from_jacobians),
    "frame_pose": ("q", lambda tree, q: [x for part in poses.frame_pose(tree, q, "tip") for x in part.flat]),
    "frame_jacobian": ("q", lambda tree, q: jacobians.frame_jacobian(tree, q, "tip")),
    "frame_jacobian_body": ("q", lambda tree, q: jacobians.frame_jacobian(tree, q, "tip", "body")),
    "frame_jacobian_rate": ("q v", lambda tree, q, v: jacobians.frame_jacobian_rate(tree, q, v, "tip")),
    "energy": ("q v", lambda t, q, v: [energy.kinetic_energy(t, q, v), energy.potential_energy(t, q)]),
    "momentum": ("q v", energy.momentum),
    "zwang_of": ("q v tau a", energy.zwang_of),
    "integrate_configuration": (
        "q v",
        lambda tree, q, v: configuration.integrate_configuration(tree, q, v, 0.1),
    ),
    "difference_configuration": (
        "q v",
        lambda tree, q, v: configuration.difference_configuration(
            tree, configuration.integrate_configuration(tree, q, v, 0.1), q
        ),
    ),
    "configuration_rate": ("q v", configuration.configuration_rate),
    "mass_centre": ("q", energy.mass_centre),
}


def state_of(m: zw.Mechanism, seed: int) -> dict[str, np.ndarray]:
    return dict(zip(("q", "v", "tau", "a"), random_state(m, seed), strict=True))


def flat(value: Any) -> np.ndarray:
    return np.array([x for part in (value if isinstance(value, list) else [value]) for x in np.ravel(part)])


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("seed", [0, 3])
def test_traced_equals_float(name, seed):
    m = random_mechanism(seed, bodies=4)
    state = state_of(m, seed)
    inputs, function = FUNCTIONS[name]
    names = inputs.split()
    program = trace(lambda *x: np.array(flat(function(m.tree, *x))), {n: state[n].shape for n in names})
    expected = flat(function(m.tree, *(state[n] for n in names))).astype(float)
    scale = max(1.0, abs(expected).max())
    for p in (program, optimise(program)):
        (found,) = interpret(p, {n: state[n] for n in names}).values()
        np.testing.assert_allclose(found, expected, rtol=0, atol=3e-11 * scale)


SYMBOLIC = [name for name in FUNCTIONS if name not in ("integrate_configuration", "difference_configuration")]


def small_mechanism(r: Callable[[int, int], Any]) -> zw.Mechanism:
    """A small mechanism with fractions r(a, b) as parameters, so that exact arithmetic stays short."""
    return zw.Mechanism(
        bodies=[
            zw.Body("a", joint=zw.Revolute("j0", axis=(0, 0, 1)), mass=r(3, 2), com=(r(1, 5), r(1, 7), 0),
                    inertia=(r(1, 10), r(1, 8), r(1, 9))),
            zw.Body("b", joint=zw.Prismatic("j1", axis=(1, 0, 0)), parent="a", position=(r(1, 3), 0, r(1, 4)),
                    mass=1, com=(0, r(1, 6), 0), inertia=(r(1, 10), r(1, 8), r(1, 9), r(1, 50), 0, 0)),
            zw.Body("c", joint=zw.Ball("j2"), parent="b", position=(0, 0, r(1, 2)), mass=2,
                    com=(r(1, 9), 0, r(1, 8)), inertia=(r(1, 20), r(1, 18), r(1, 19))),
        ],
        gravity=(0, r(1, 3), r(-981, 100)),
        frames=[zw.Frame("tip", "c", (r(1, 3), 0, 0))],
    )  # fmt: skip


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_equals_float_at_a_rational_point(name):
    exact, floats = (values_of(r) for r in (sp.Rational, lambda a, b: a / b))
    inputs, function = FUNCTIONS[name]
    names = inputs.split()
    found, expected = (
        flat(function(small_mechanism(r).tree, *(values[n] for n in names)))
        for r, values in ((sp.Rational, exact), (lambda a, b: a / b, floats))
    )
    np.testing.assert_allclose(
        [float(sp.N(x, 30)) for x in found], expected.astype(float), rtol=1e-11, atol=1e-11
    )


def values_of(r: Callable[[int, int], Any]) -> dict[str, np.ndarray]:
    return {
        "q": np.array([r(1, 3), r(2, 5), r(1, 3), r(2, 3), r(-2, 3), 0]),
        "v": np.array([r(k, 7) for k in (3, -2, 5, 1, -4)]),
        "tau": np.array([r(k, 5) for k in (1, 2, -3, 4, -1)]),
        "a": np.array([r(k, 3) for k in (-1, 2, 2, 1, -5)]),
    }
