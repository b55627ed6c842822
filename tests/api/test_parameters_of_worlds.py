"""The parameters of each of many worlds are valid where the mechanism with these numbers can be built."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.api.arguments.parameters_of_worlds import check_worlds
from zwang.errors import DescriptionError, ParameterError

a, b = sp.symbols("a b", real=True)
UNIT = (0.01, 0.01, 0.01)


def hinge(joint: dict | None = None, **body) -> zw.Mechanism:
    body = {"mass": 1.0, "com": (0, 0, -1), "inertia": UNIT, **body}
    return zw.Mechanism("m", [zw.Body("arm", zw.Revolute("j", axis=(0, 1, 0), **(joint or {})), **body)])


def turned(angle, scale) -> tuple:
    c, s = scale * sp.cos(angle), scale * sp.sin(angle)
    return ((c, -s, 0), (s, c, 0), (0, 0, 1))


def with_tool(**tool) -> zw.Mechanism:
    arm = hinge().bodies[0]
    return hinge().replace(bodies=[arm, zw.Body("tool", parent="arm", **tool)])


def with_parts(**parts) -> zw.Mechanism:
    return hinge().replace(**parts)


MECHANISMS = {
    "mass": lambda: hinge(mass=(a - 0.5) ** 2 - 0.01 + 0 * b),
    "massless": lambda: hinge(mass=sp.Max(a, 0), inertia=(sp.Max(b, 0), sp.Max(b, 0), 0)),
    "principal moments": lambda: hinge(inertia=(1 + a, 1 + b, 1)),
    "products of inertia": lambda: hinge(inertia=(1, 1, 1, a, b, 0)),
    "inertia matrix": lambda: hinge(inertia=((1, a / 10, 0), (a / 10, 1 + b, 0), (0, 0, 1))),
    "friction": lambda: hinge({"friction": a, "armature": b**2}),
    "limits": lambda: hinge({"limits": (a, b)}),
    "axis": lambda: hinge().replace(
        bodies=[zw.Body("arm", zw.Revolute("j", axis=(sp.Max(a, 0), 0, sp.Max(b, 0))), mass=1.0)]
    ),
    "orientation": lambda: hinge(orientation=turned(b, 1 + sp.Max(a, 0))),
    "size": lambda: hinge(geometry=[zw.Box(a + 1, 1, b + 2)]),
    "density": lambda: hinge(geometry=[zw.Sphere(0.5 + a)], density=1 + b),
    "damper": lambda: with_parts(forces=[zw.Damper("j", a + b)]),
    "sum of inertias": lambda: with_tool(mass=a, inertia=(b, b, b), unchecked_inertia=True),
    "not finite": lambda: hinge(mass=1 / sp.Max(a, 0) + b**2),
    "complex": lambda: hinge(mass=sp.sqrt(a) + b**2),
    "piecewise": lambda: hinge(mass=sp.Piecewise((1.0, a < b), (0.3 - a, True))),
    "home": lambda: with_parts(home=(1 / sp.Max(a, 0) + b,)),
    "formula": lambda: with_parts(constraints=[zw.Holonomic("h", sp.Symbol("j") * sp.Max(a, 0) - b)]),
}


def alone(m: zw.Mechanism, values: dict[str, np.ndarray], world: int) -> str:
    """The error of the mechanism with the numbers of one world; empty if it is valid."""
    try:
        m.subs({name: float(x[world]) for name, x in values.items()})
    except DescriptionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_world_is_valid_where_it_is_valid_alone(name):
    """Groups of random worlds are rejected with the error of the first world that is invalid alone."""
    m, rng = MECHANISMS[name](), np.random.default_rng(3)
    values = {s: rng.uniform(-1.5, 1.5, 40).round(1) for s in m.symbols}
    errors = [alone(m, values, w) for w in range(40)]
    valid = [w for w in range(40) if not errors[w]]
    assert 0 < len(valid) < 40  # some are valid, and some are not
    check_worlds(m, {s: x[valid] for s, x in values.items()})
    for w in np.flatnonzero(errors)[:8].tolist():
        rows = [*valid[:5], w, *valid[5:9]]
        with pytest.raises(ParameterError) as caught:
            check_worlds(m, {s: x[rows] for s, x in values.items()})
        place = len(valid[:5])
        assert str(caught.value) == f"the parameters of world {place} are invalid: {errors[w]}"


def test_worlds_and_simulate_name_the_world_that_no_body_can_have():
    """Ix + Iz >= Iy couples two symbols: the worlds at the smallest and largest values are valid."""
    Ix, Iy = sp.symbols("Ix Iy", positive=True)
    m = zw.Mechanism("m", [zw.Body("b", zw.Ball("j"), mass=1.0, com=(0, 0, -1), inertia=(Ix, Iy, 0.01))])
    values = {"Ix": np.array([0.001, 0.03, 0.005]), "Iy": np.array([0.0105, 0.025, 0.02])}
    assert (values["Ix"] + 0.01 < values["Iy"]).tolist() == [False, False, True]
    for build in (
        lambda: zw.Worlds(m, 3, params=values),
        lambda: zw.simulate(m, duration=0.1, params=values),
    ):
        with pytest.raises(ParameterError, match=r"world 2 .*'b'.*triangle"):
            build()
    worlds = zw.Worlds(m, 4, params={"Ix": 0.02, "Iy": 0.02})
    for chosen, bad in (([3], {"Ix": 0.005}), ([1, 3], {"Ix": [0.015, 0.005]})):
        with pytest.raises(ParameterError, match=r"world 3 .*'b'.*triangle"):
            worlds.set(chosen, params=bad)
    assert (worlds.params["Ix"] == 0.02).all()


def test_a_mass_that_is_negative_between_valid_values_is_rejected():
    m = hinge(mass=(a - 1) ** 2 - 0.01)
    worlds = zw.Worlds(m, 2, params={"a": [0.5, 2.0]})
    worlds.set(params={"a": [0.5, 2.0]})
    with pytest.raises(ParameterError, match=r"world 1 .*mass of body 'arm' is -0\.01"):
        worlds.set([1], params={"a": 1.0})
