"""Constraint rows, solvers and the whole step give the same results on floats, traced and compiled, in both
precisions: the same functions run on all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.ir.program import Program
from zwang.compiler.pipeline import trace_and_optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.constraint.context import row_context
from zwang.constraint.inverse_weights import inverse_weights
from zwang.constraint.rows import PER_ROW
from zwang.constraint.rows_of_mechanism import constraint_rows
from zwang.integrator.fixed_step import State
from zwang.kinematics.kinematics import Kinematics
from zwang.scalar import where
from zwang.simulation.constrained import solve_constrained
from zwang.simulation.step import step, step_settings
from zwang.solver.solve import SOLVERS

SOFT = zw.Softness((0.05, 0.8))
NEAR = {"float64": 1e-9, "float32": 2e-3}  # of the largest value of a result


class Case(NamedTuple):
    """A mechanism in a state; kinds: those that its rows must have, active ones."""

    mechanism: zw.Mechanism
    q: Any
    v: Any
    kinds: tuple[str, ...]


def arm(*constraints: Any, tip: Any = None, geometry: Any = (), **fields: Any) -> zw.Mechanism:
    """A double pendulum with a slider at its end, and what restricts its motion."""
    joints = {"left": zw.Revolute("left", axis=(0, 1, 0)), "right": zw.Revolute("right", axis=(0, 1, 0)),
              "reach": zw.Prismatic("reach", axis=(1, 0, 0))}  # fmt: skip
    joints |= fields.pop("joints", {})
    return zw.Mechanism(
        bodies=[
            zw.Body("upper", joint=joints["left"], mass=1.5, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.2)),
            zw.Body("lower", joint=joints["right"], parent="upper", position=(1, 0, 0), mass=1.0,
                    com=(0.4, 0, 0), inertia=(0.1, 0.15, 0.1)),
            zw.Body("hand", joint=joints["reach"], parent="lower", position=(0.8, 0, 0), mass=0.5,
                    inertia=(0.02, 0.02, 0.02), geometry=[] if tip is None else [tip]),
        ],
        constraints=constraints, geometry=geometry, **fields,
    )  # fmt: skip


ARM = [0.4, -0.9, 0.1], [0.3, -0.5, 0.2]


def of_arm(*constraints: Any, kinds: tuple[str, ...] = ("equality",), **fields: Any) -> Case:
    return Case(arm(*constraints, **fields), *ARM, kinds)


def balls(condims: tuple[int, int], cone: str, hard: bool = False) -> Case:
    """Two balls, one on top of the other, on the floor; they slide, spin and roll. condims: of the contact
    with the floor, and of the contact between the balls, which is larger.
    """
    lower, upper = (zw.Surface(condim=n, friction=(0.6, 0.05, 0.02), hard=hard) for n in condims)
    bodies = [
        zw.Body(name, joint=zw.Free(f"{name} joint"), mass=mass, inertia=(0.4 * mass * 0.01,) * 3,
                geometry=[zw.Sphere(radius=0.1, surface=surface)])
        for name, mass, surface in (("low", 1.0, lower), ("high", 0.7, upper))
    ]  # fmt: skip
    options = zw.Options(cone=cone, impratio=1.5)
    m = zw.Mechanism(bodies=bodies, geometry=[zw.Plane(surface=lower)], options=options)
    q = [0, 0, 0.099, 1, 0, 0, 0, 0.03, 0.02, 0.29, 1, 0, 0, 0]
    v = [0.4, -0.2, -0.05, 0.3, 0.1, 0.5, -0.1, 0.2, -0.1, 1.0, -0.6, 0.4]
    pyramids = cone == "pyramidal" and not hard
    return Case(m, q, v, tuple("contact" if n == 1 or pyramids else "cone" for n in condims))


def wheeled(*constraints: Any) -> Case:
    """A body that moves in the plane, with its heading."""
    joints = zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("y", axis=(0, 1, 0)), zw.Revolute("turn")
    body = zw.Body("sled", joint=joints, mass=2.0, com=(0.1, 0, 0), inertia=(0.2, 0.2, 0.3))
    m = zw.Mechanism(bodies=[body], constraints=constraints)
    return Case(m, [0.2, -0.1, 0.5], [np.cos(0.5), np.sin(0.5), 0.7], ("equality",))


def rolling() -> Case:
    ball = zw.Body("ball", joint=zw.Free("free"), mass=1.0, inertia=(0.004,) * 3)
    m = zw.Mechanism(bodies=[ball], constraints=[zw.Rolling("rolls", "ball", 0.1)])
    return Case(m, [0, 0, 0.1, 1, 0, 0, 0], [0.1, -0.2, 0, 2.0, 1.0, 0.5], ("equality",))


def joint_rows(softness: Any) -> Case:
    """Limits of two joints, and dry friction in all three."""
    rows = {"limit_softness": softness, "friction_softness": softness}
    joints = {
        "left": zw.Revolute("left", axis=(0, 1, 0), friction=0.8, friction_softness=softness),
        "right": zw.Revolute("right", axis=(0, 1, 0), limits=(-0.895, 1.0), friction=2.0, **rows),
        "reach": zw.Prismatic("reach", axis=(1, 0, 0), limits=(-0.5, 0.098), friction=0.1, **rows),
    }
    return Case(arm(joints=joints), *ARM, ("friction", "limit"))


def ball_limit() -> Case:
    joint = zw.Ball("neck", limits=(0, 0.5))
    head = zw.Body("head", joint=joint, mass=1.0, com=(0, 0, 0.2), inertia=(0.02, 0.02, 0.01))
    q = [np.cos(0.26), np.sin(0.26), 0, 0]
    return Case(zw.Mechanism(bodies=[head]), q, [1.0, 0.5, 0.2], ("limit",))


def tendons(softness: Any) -> zw.Mechanism:
    lengths = {"left": 0.5, "right": 0.3}
    tendon = zw.Tendon("cord", joints=lengths, limits=(-0.06, 1), friction=0.5, limit_softness=softness)
    coupled = zw.Tendon("other", joints={"reach": 1.0})
    coupling = zw.TendonCoupling("ratio", "cord", "other", (-0.12, 0.5), softness=softness)
    return arm(*([coupling] if softness else []), tendons=[tendon, coupled])


def nonideal() -> Case:
    x, y = sp.symbols("x y", real=True)
    vx, vy, N = sp.symbols("x_dot y_dot N", real=True)
    size = sp.sqrt(vx**2 + vy**2)
    ring = zw.Holonomic("ring", x**2 + y**2 - 1)
    law = zw.NonIdeal("rough", "ring", {"x": -0.3 * N * vx / size, "y": -0.3 * N * vy / size})
    bead = zw.Body(
        "bead", joint=(zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("y", axis=(0, 1, 0))), mass=1.0
    )
    m = zw.Mechanism(bodies=[bead], constraints=[ring, law], gravity=(0, -9.81, 0))
    return Case(m, [np.cos(0.4), np.sin(0.4)], [-2 * np.sin(0.4), 2 * np.cos(0.4)], ("equality",))


def mixed() -> Case:
    """A hard loop, a limit, dry friction and a contact of a hard surface, in one mechanism."""
    surface = zw.Surface(friction=(0.5, 0.005, 0.0001), hard=True)
    joints = {"left": zw.Revolute("left", axis=(0, 1, 0), friction=0.5)}
    tip = zw.Sphere(radius=0.05, surface=surface)
    floor = zw.Plane(surface=surface, position=(0, 0, hand()[2] - 0.0499))
    m = arm(zw.JointCoupling("gear", "right", "left", (-1.1, 0.5)), tip=tip, geometry=[floor], joints=joints)
    return Case(m, *ARM, ("equality", "friction", "cone"))


def hand() -> np.ndarray:
    """Origin of the hand in the state `ARM` [m]."""
    (upper, lower, reach), _ = ARM
    turned = upper + lower
    directions = np.array([[np.cos(upper), 0, -np.sin(upper)], [np.cos(turned), 0, -np.sin(turned)]])
    return directions[0] + (0.8 + reach) * directions[1]


PIN = ("hand", (0, 0, 0)), ("world", tuple(hand()))
ROD = ("hand", (0, 0, 0)), ("world", tuple(hand() + np.array([0.3, 0, 0.4])))
GEAR = "gear", "right", "left", (-1.132, 0.5, 0.2)
CASES: dict[str, Callable[[], Case]] = {
    "connect": lambda: of_arm(zw.Connect("pin", *PIN, softness=SOFT)),
    "hard connect": lambda: of_arm(zw.Connect("pin", *PIN)),
    "weld": lambda: of_arm(zw.Weld("weld", "hand", "upper", position=(0, 0, 0.1), softness=SOFT)),
    "distance": lambda: of_arm(zw.Distance("rod", *ROD, 0.5, softness=SOFT)),
    "hard distance": lambda: of_arm(zw.Distance("rod", *ROD, 0.5)),
    "coupling": lambda: of_arm(zw.JointCoupling(*GEAR, softness=SOFT)),
    "hard coupling": lambda: of_arm(zw.JointCoupling(*GEAR)),
    "tendons": lambda: Case(tendons(SOFT), *ARM, ("equality", "friction", "limit")),
    "hard tendons": lambda: Case(tendons(None), *ARM, ("friction", "limit")),
    "limits and friction": lambda: joint_rows(SOFT),
    "hard limits and friction": lambda: joint_rows(None),
    "ball limit": ball_limit,
    **{
        f"{cone} contacts {a} and {b}": lambda condims=(a, b), cone=cone: balls(condims, cone)
        for a, b in ((1, 3), (4, 6))
        for cone in ("pyramidal", "elliptic")
    },
    **{
        f"hard contacts {a} and {b}": lambda condims=(a, b): balls(condims, "elliptic", hard=True)
        for a, b in ((1, 3), (4, 6))
    },
    "knife edge and pfaffian": lambda: wheeled(
        zw.NoSideSlip("edge", "sled", point=(-0.2, 0.1, 0)),
        zw.Pfaffian("drive", {"x": sp.Symbol("turn", real=True), "y": 2, "turn": 1}, rate=0.3),
    ),
    "rolling": rolling,
    "non-ideal": nonideal,
    "mixed": mixed,
}


def results(c: Case, q: Any, v: Any, tau: Any, solvers: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The rows, the accelerations and generalised constraint forces by solver, and the state after a step."""
    m = c.mechanism
    weights = inverse_weights(m)
    rows = constraint_rows(row_context(m, Kinematics(m.tree, q, v), inverse_weights=weights)).without_groups()
    found = {name: getattr(rows, name) for name in ("J", *PER_ROW) if name != "active"}
    found["active"] = np.array([where(active, 1.0, 0.0) for active in rows.active])
    for solver in solvers:
        solution = solve_constrained(m, q, v, tau, solver=solver, inverse_weights=weights)
        found[f"acceleration {solver}"] = solution.solution.acceleration
        found[f"force {solver}"] = solution.constraint_force
    settings = step_settings(m, 0.002)
    after = step(settings, State(q, v, np.zeros(0)), tau, 0).state
    return {name: np.ravel(x) for name, x in {**found, "q": after.q, "v": after.v}.items()}


class Problem(NamedTuple):
    """Two states by input, (2, n); the results of both on floats; and the program of the same functions."""

    inputs: dict[str, np.ndarray]
    expected: list[dict[str, np.ndarray]]
    program: Program


@cache
def problem(name: str) -> Problem:
    """The case in its state, and with the velocity reversed, where the state satisfies all constraints."""
    c = CASES[name]()
    q, v = (np.array(x, float) for x in (c.q, c.v))
    tau = 0.5 * np.cos(np.arange(len(v)))
    settings = step_settings(c.mechanism, 1e-5)
    states = [step(settings, State(q, sign * v, np.zeros(0)), 0 * v, 0).state for sign in (1, -1)]
    inputs = {"q": np.array([x.q for x in states]), "v": np.array([x.v for x in states])}
    inputs["tau"] = np.array([tau, -tau])
    expected = [results(c, *(x[w] for x in inputs.values()), tuple(SOLVERS)) for w in range(2)]
    solvers = ("newton",) if "hard" in name or name == "non-ideal" else ("newton", "conjugate")
    shapes = {key: x.shape[1:] for key, x in inputs.items()}
    program = trace_and_optimise(lambda q, v, tau: results(c, q, v, tau, solvers), shapes)
    return Problem(inputs, [{k: np.asarray(x, float) for k, x in one.items()} for one in expected], program)


def assert_near(p: Problem, found: dict[str, np.ndarray], dtype: str) -> None:
    for w, expected in enumerate(p.expected):
        for key, values in found.items():
            scale = max(1.0, np.abs(expected[key]).max(initial=0.0))
            np.testing.assert_allclose(
                values[w], expected[key], rtol=0, atol=NEAR[dtype] * scale, err_msg=f"{key}, state {w}"
            )


cases = pytest.mark.parametrize("name", CASES)


@cases
def test_the_active_rows_of_a_case_are_of_its_kinds(name):
    c = CASES[name]()
    kinematics = Kinematics(c.mechanism.tree, np.array(c.q, float), np.array(c.v, float))
    rows, _ = constraint_rows(row_context(c.mechanism, kinematics)).only_active()
    assert set(rows.kinds) == set(c.kinds)


@cases
def test_all_solvers_agree_on_floats(name):
    for expected in problem(name).expected:
        a = expected["acceleration newton"]
        for solver in SOLVERS:
            found, scale = expected[f"acceleration {solver}"], max(1.0, np.abs(a).max())
            np.testing.assert_allclose(found, a, rtol=0, atol=1e-8 * scale, err_msg=solver)


@cases
def test_the_interpreted_graph_equals_floats(name):
    p = problem(name)
    assert_near(p, interpret(p.program, p.inputs), "float64")


def in_single_precision(name):
    """Of the contacts, those whose operations contain those of all others."""
    return "contact" not in name or name.endswith("6")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name in CASES for dtype in NEAR if dtype == "float64" or in_single_precision(name)],
)
def test_compiled_equals_floats(name, dtype):
    p = problem(name)
    compiled = CompiledFunction(p.program, dtype=dtype, threads=1, cache=False)
    found = compiled(*p.inputs.values())
    assert_near(p, dict(zip((port.name for port in p.program.outputs), found, strict=True)), dtype)
