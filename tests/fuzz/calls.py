"""Misuses of the public functions and classes: valid calls with one or two invalid arguments."""

from __future__ import annotations

import datetime
import decimal
import fractions
import inspect
import random
import webbrowser
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import sympy as sp
import xarray as xr

import zwang as zw
from tests.fuzz.client_calls import TIME, client_calls, motion, torques
from tests.fuzz.trial import outcome_of
from zwang.mechanism.mechanism import Mechanism

matplotlib.use("Agg")
webbrowser.open = lambda *_, **__: True  # type: ignore[assignment]

HOSTILE: dict[str, Callable[[], Any]] = {
    "complex": lambda: 1 + 2j,
    "text": lambda: "left",
    "empty text": lambda: "",
    "long text": lambda: "\x1b[31m" * 200,
    "bytes": lambda: b"1",
    "date": lambda: datetime.datetime(2020, 1, 1),
    "numpy date": lambda: np.array(["2020-01-01"], dtype="datetime64[D]"),
    "None": lambda: None,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: -float("inf"),
    "-1": lambda: -1,
    "0": lambda: 0,
    "0.5": lambda: 0.5,
    "10**400": lambda: 10**400,
    "2**63": lambda: 2**63,
    "-2**70": lambda: -(2**70),
    "1e308": lambda: 1e308,
    "True": lambda: True,
    "7": lambda: 7,
    "[]": list,
    "{}": dict,
    "[[]]": lambda: [[]],
    "ragged": lambda: [1, [2, 3]],
    "[None]": lambda: [None],
    "['a']": lambda: ["a"],
    "[1j]": lambda: [1j],
    "[nan, nan]": lambda: [np.nan, np.nan],
    "objects": lambda: np.array([1, "a", None], dtype=object),
    "(2, 3, 4)": lambda: np.zeros((2, 3, 4)),
    "(0,)": lambda: np.zeros(0),
    "(2, 2)": lambda: np.ones((2, 2)),
    "object": object,
    "function": lambda: lambda: 0,
    "control": lambda: lambda t, q, v: [q],
    "{'x': 1}": lambda: {"x": 1},
    "{1: 2}": lambda: {1: 2},
    "{None: 'a'}": lambda: {None: "a"},
    "set": lambda: {1, 2},
    "range": lambda: range(3),
    "iterator": lambda: iter([1, 2, 3]),
    "symbol": lambda: sp.Symbol("x"),
    "zoo": lambda: sp.zoo,
    "matrix": lambda: sp.Matrix([1, 2]),
    "path": lambda: Path("nowhere") / "x.nc",
    "folder": lambda: Path("."),
    "Ellipsis": lambda: ...,
    "slice": lambda: slice(1),
    "decimal": lambda: decimal.Decimal("NaN"),
    "fraction": lambda: fractions.Fraction(1, 3),
    "masked": lambda: np.ma.masked_array([1.0, 2.0], [True, False]),
    "structured": lambda: np.zeros(2, dtype=[("a", float)]),
    "dataset": xr.Dataset,
    "body": lambda: zw.Body("b"),
    "mechanism": Mechanism,
    "tuple of texts": lambda: ("arm", "hand"),
    "pair": lambda: ("arm", (0, 0, 0)),
    "huge list": lambda: [1e308] * 3,
    "bool list": lambda: [True, False],
}


TETRAHEDRON: dict[str, Any] = {
    "vertices": [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)],
    "faces": [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)],
}


@cache
def arm() -> Mechanism:
    """Two revolute joints with a motor, a frame, a tendon, a soft and a hard constraint, and a shape."""
    solid = {"mass": 1, "com": (0, 0, -0.2), "inertia": (0.1, 0.1, 0.1)}
    bodies = [
        zw.Body(
            "arm",
            zw.Revolute("shoulder", axis=(0, 1, 0), limits=(-2, 2)),
            geometry=(zw.Sphere(0.1, name="s"),),
            **solid,
        ),
        zw.Body(
            "hand",
            zw.Revolute("wrist", axis=(1, 0, 0)),
            "arm",
            (0, 0, -0.4),
            geometry=(zw.Sphere(0.1, name="t"),),
            **solid,
        ),
    ]
    return zw.Mechanism(
        "arm",
        bodies,
        forces=[zw.Motor("m", "shoulder")],
        frames=[zw.Frame("tip", "hand", (0, 0, -0.3)), zw.Frame("post", "world", (1, 0, 1))],
        tendons=[zw.Tendon("belt", {"shoulder": 1, "wrist": 2})],
    )


@cache
def symbolic() -> Mechanism:
    """One revolute joint; the mass is a symbol."""
    body = zw.Body("arm", zw.Revolute("shoulder"), mass=sp.Symbol("m", positive=True), inertia=(1, 1, 1))
    return zw.Mechanism("symbolic", [body])


@cache
def recording() -> xr.Dataset:
    """A motion of `arm`."""
    return zw.simulate(arm(), duration=0.004, step=0.002, compiled=False, progress=False)


@cache
def fast() -> Any:
    return zw.compile(arm())


@cache
def space() -> Any:
    return zw.robot.workspace(arm(), "tip", samples=20)


Q, V = [0.1, 0.2], [0.0, 0.0]
_NAMED = {"name": "new"}

PARTS: dict[str, tuple[dict[str, Any], Callable[[Any], dict[str, Any]]]] = {
    **{
        name: (
            dict(_NAMED),
            lambda part: {
                "bodies": [*arm().bodies, zw.Body("b", part, mass=1, com=(0.1, 0.1, 0.1), inertia=(1, 1, 1))]
            },
        )
        for name in "Revolute Prismatic Screw Cylindrical Universal Planar Ball Free Fixed".split()
    },
    **{
        name: (
            sizes,
            lambda part: {
                "bodies": [
                    *arm().bodies,
                    zw.Body("b", zw.Free("j"), mass=1, inertia=(1, 1, 1), geometry=(part,)),
                ],
                "geometry": (zw.Plane(),),
            },
        )
        for name, sizes in {
            "Sphere": {"radius": 0.1},
            "Box": {"x": 0.1, "y": 0.1, "z": 0.1},
            "Capsule": {"radius": 0.1, "length": 1},
            "Plane": {},
            "Cylinder": {"radius": 0.1, "length": 1},
            "Ellipsoid": {"x": 0.1, "y": 0.1, "z": 0.1},
            "HeightField": {"heights": ((0.1, 0.2), (0.3, 0.1))},
            "Mesh": TETRAHEDRON,
        }.items()
    },
    "MeshHull": (
        {
            "vertices": [0, 1, 2, 3],
            "normals": [(0, 0, -1), (0, -1, 0), (-1, 0, 0), (3**-0.5, 3**-0.5, 3**-0.5)],
            "counts": [3] * 4,
            "corners": [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3],
        },
        lambda part: {
            "bodies": [
                *arm().bodies,
                zw.Body(
                    "b",
                    zw.Free("j"),
                    mass=1,
                    inertia=(1, 1, 1),
                    geometry=(zw.Mesh(**TETRAHEDRON, hull=part),),
                ),
            ],
            "geometry": (zw.Plane(),),
        },
    ),
    "Surface": (
        {},
        lambda part: {
            "geometry": (zw.Plane(),),
            "bodies": [
                *arm().bodies,
                zw.Body(
                    "b", zw.Free("j"), mass=1, inertia=(1, 1, 1), geometry=(zw.Sphere(0.1, surface=part),)
                ),
            ],
        },
    ),
    "Softness": (
        {},
        lambda part: {
            "bodies": [
                *arm().bodies,
                zw.Body("b", zw.Revolute("j", limits=(1, 2), limit_softness=part), mass=1, inertia=(1, 1, 1)),
            ]
        },
    ),
    "Body": (
        {"name": "b", "joint": zw.Revolute("j"), "mass": 1, "inertia": (1, 1, 1)},
        lambda part: {"bodies": [*arm().bodies, part]},
    ),
    "Frame": ({"name": "f", "body": "arm"}, lambda part: {"frames": [part]}),
    "Motor": ({"name": "u", "joint": "wrist"}, lambda part: {"forces": [part]}),
    "Pid": (
        {"proportional": 2.0},
        lambda part: {"forces": [zw.Actuator("u", joint="wrist", pid=part)]},
    ),
    "Actuator": ({"name": "u", "joint": "wrist"}, lambda part: {"forces": [part]}),
    "Muscle": (
        {"strength": 1, "length_range": (0, 1)},
        lambda part: {"forces": [zw.Actuator("u", joint="wrist", muscle=part)]},
    ),
    "Damper": ({"joint": "wrist", "coefficient": 1}, lambda part: {"forces": [part]}),
    "Spring": ({"joint": "wrist", "stiffness": 1}, lambda part: {"forces": [part]}),
    "PointSpring": (
        {"a": ("arm", (0, 0, 0)), "b": ("world", (1, 0, 0)), "stiffness": 1},
        lambda part: {"forces": [part]},
    ),
    "Wrench": ({"body": "arm"}, lambda part: {"forces": [part]}),
    "GravityCompensation": ({"body": "arm"}, lambda part: {"forces": [part]}),
    "EllipsoidDrag": ({"body": "arm", "semiaxes": (1, 1, 1)}, lambda part: {"forces": [part]}),
    "FluidDrag": ({"body": "arm", "box": (1, 1, 1)}, lambda part: {"forces": [part]}),
    **{
        name: (given, lambda part: {"constraints": [part]})
        for name, given in {
            "Connect": {**_NAMED, "a": ("arm", (0, 0, 0)), "b": ("world", (0, 0, 0))},
            "JointCoupling": {**_NAMED, "joint": "wrist", "to": "shoulder"},
            "TendonCoupling": {**_NAMED, "tendon": "belt"},
            "Distance": {**_NAMED, "a": ("arm", (0, 0, 0)), "b": ("world", (1, 0, 0)), "length": 1},
            "Holonomic": {**_NAMED, "expression": sp.Symbol("wrist")},
            "NoSideSlip": {**_NAMED, "body": "hand"},
            "Pfaffian": {**_NAMED, "coefficients": {"wrist": 1}},
            "Rolling": {**_NAMED, "body": "hand", "radius": 0.1},
            "Weld": {**_NAMED, "a": "hand", "b": "world"},
        }.items()
    },
    "NonIdeal": (
        {**_NAMED, "constraint": "c", "forces": {"wrist": 0.1}},
        lambda part: {"constraints": [zw.Holonomic("c", sp.Symbol("wrist")), part]},
    ),
    "CoulombFriction": (
        {**_NAMED, "coefficient": 0.1, "joint": "wrist", "radius": 0.1},
        lambda part: {"constraints": [part]},
    ),
    "ContactExclude": ({"bodies": ("arm", "hand")}, lambda part: {"contacts": [part]}),
    "ContactPair": ({**_NAMED, "geometry": ("s", "t")}, lambda part: {"contacts": [part]}),
    "Keyframe": (dict(_NAMED), lambda part: {"keyframes": [part]}),
    "Options": ({}, lambda part: {"options": part}),
    "Camera": (dict(_NAMED), lambda part: {"cameras": [part]}),
    "CameraSensor": (
        {**_NAMED, "frame": "tip", "camera": "eye"},
        lambda part: {"sensors": [part], "cameras": [zw.Camera("eye")]},
    ),
    **{
        name: ({**_NAMED, **given}, lambda part: {"sensors": [part]})
        for name, given in {
            "SiteSensor": {"kind": "force", "frame": "tip"},
            "TouchSensor": {"frame": "tip", "zone": zw.Sphere(0.2)},
            "InsideSensor": {"frame": "tip", "zone_frame": "post", "zone": zw.Box(1, 1, 1)},
            "RangeSensor": {"frame": "tip"},
            "JointSensor": {"kind": "limit_force", "joint": "shoulder"},
            "TendonSensor": {"kind": "position", "tendon": "belt"},
            "ActuatorSensor": {"kind": "force", "actuator": "m"},
            "FrameSensor": {"kind": "quaternion", "frame": "tip", "relative_to": "arm"},
            "SubtreeSensor": {"kind": "mass_centre", "body": "arm"},
            "DistanceSensor": {"kind": "segment", "a": ("shape", "s"), "b": ("body", "hand"), "cutoff": 1},
            "ContactSensor": {"first": ("shape", "s"), "data": ("found", "force")},
            "GlobalSensor": {"kind": "time"},
            "UserSensor": {},
        }.items()
    },
    "Tendon": ({**_NAMED, "joints": {"wrist": 1}}, lambda part: {"tendons": [part]}),
    "PointSpeed": (
        {**_NAMED, "body": "hand"},
        lambda part: zw.constrained_dynamics(arm(), Q, V, V, coordinate_reduction=[part, part]) and {},
    ),
    "Wrap": (
        {"at": 1, "radius": 0.1},
        lambda part: {"tendons": [zw.Tendon("w", path=("post", "tip", "post"), wraps=(part,))]},
    ),
}
"""For each class of parts: valid arguments, and how a mechanism contains the part."""


def _use(changes: dict[str, Any]) -> Any:
    """Display, serialise and simulate `arm` with changes."""
    m = arm().replace(**changes)
    assert isinstance(repr(m), str) and Mechanism.from_json(m.to_json()) == m
    if m.symbols:
        return None
    q, zero = np.array(m.home or m.neutral, dtype=float), np.zeros(m.nv)
    return zw.energy(m, q, zero), zw.constrained_dynamics(m, q, zero, zero), zw.sensors(m, q, zero)


def _simulated(*arguments: Any, **options: Any) -> Any:
    return zw.simulate(*arguments, progress=False, **options)


def _viewed(*arguments: Any, **options: Any) -> None:
    zw.view(*arguments, **options).close()


def _drawn(function: Callable[..., Any]) -> Callable[..., None]:
    def drawn(*arguments: Any, **options: Any) -> None:
        function(*arguments, **options)
        plt.close("all")

    return drawn


Calls = dict[str, tuple[Callable[..., Any], dict[str, Any]]]
"""By name: a callable and valid arguments."""


def _functions() -> dict[str, tuple[Callable[..., Any], dict[str, Any], Any]]:
    """By name: the callable, valid arguments, and the callable whose signature it has."""
    calls = _dynamics() | _simulation() | _methods_and_robot() | _compiled_methods()
    return {name: (call, arguments, _signed(name, call)) for name, (call, arguments) in calls.items()}


def _arguments() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The arguments (mechanism), (q, v), (q, v, tau) and (frame) of many functions, for `arm`."""
    state = {"q": Q, "v": V}
    return {"mechanism": arm()}, state, {**state, "tau": V}, {"frame": "tip"}


def _dynamics() -> Calls:
    m, state, tau, frame = _arguments()
    return {
        "Mechanism": (
            lambda **k: _use({}) if zw.Mechanism(**k) == arm() else None,
            {"name": "m", "bodies": arm().bodies},
        ),
        "forward_dynamics": (zw.forward_dynamics, {**m, **tau}),
        "bias_forces": (zw.bias_forces, {**m, **state}),
        "inverse_dynamics": (zw.inverse_dynamics, {**m, **state, "a": V}),
        "mass_matrix": (zw.mass_matrix, {**m, "q": Q}),
        "frame_pose": (zw.frame_pose, {**m, "q": Q, **frame}),
        "frame_jacobian": (zw.frame_jacobian, {**m, "q": Q, **frame}),
        "frame_jacobian_rate": (zw.frame_jacobian_rate, {**m, **state, **frame}),
        "energy": (zw.energy, {**m, **state}),
        "momentum": (zw.momentum, {**m, **state}),
        "mass_centre": (zw.mass_centre, {**m, "q": Q}),
        "integrate_configuration": (zw.integrate_configuration, {**m, **state, "dt": 0.1}),
        "difference_configuration": (zw.difference_configuration, {**m, "q1": Q, "q0": V}),
        "zwang_of": (zw.zwang_of, {**m, **tau, "a": V}),
        "zwang_by_body": (zw.zwang_by_body, {**m, **tau, "a": V}),
        "sensors": (zw.sensors, {**m, **state, "control": [0.0]}),
        "external_wrenches": (zw.external_wrenches, {**m, **state, "control": [0.0]}),
        "body_quantities": (zw.body_quantities, {**m, **state}),
        "frame_velocity": (zw.frame_velocity, {**m, **state, **frame}),
        "frame_acceleration": (zw.frame_acceleration, {**m, **state, "a": V, **frame}),
        "with_applied_wrenches": (zw.with_applied_wrenches, m),
        "with_mocap_parameters": (
            zw.with_mocap_parameters,
            {"mechanism": arm().replace(bodies=[*arm().bodies, zw.Body("held", mocap=True)])},
        ),
        "with_equality_parameters": (zw.with_equality_parameters, m),
        "constrained_dynamics": (zw.constrained_dynamics, {**m, **tau}),
        "contacts": (zw.contacts, {**m, **tau}),
        "joint_reactions": (zw.joint_reactions, {**m, **tau}),
        "assemble": (zw.assemble, {**m, **state}),
        "softness": (zw.softness, {}),
        "lint": (zw.lint, m),
        "classify": (zw.classify, m),
        "TaskConstraint": (
            lambda **k: zw.task_acceleration(**m, **tau, frame=zw.TaskConstraint(**k)),
            {**frame, "desired": [0, 0], "rows": (0, 1)},
        ),
        "task_acceleration": (zw.task_acceleration, {**m, **tau, **frame, "desired": [0, 0], "rows": (0, 1)}),
    }


def _simulation() -> Calls:
    m, _, _, frame = _arguments()
    run = recording()
    return {
        "load": (zw.load, {"path": "arm.json"}),
        "compile": (zw.compile, m),
        "Adaptive": (zw.Adaptive, {}),
        "Event": (zw.Event, {"function": lambda t, q, v: q[0]}),
        "simulate events": (
            _simulated,
            {**m, "duration": 0.004, "compiled": False, "events": {"zero": lambda t, q, v: q[0]}},
        ),
        "solve_contact": (zw.solve_contact, {"G": np.eye(3), "g": [-1.0, 0.0, 0.0], "mu": [0.5]}),
        "linearize": (zw.linearize, {**m, "q": Q, "v": V}),
        "trim": (zw.trim, {**m, "guess": Q}),
        "export": (zw.export, {**m, "path": "library", "functions": ["forward_dynamics"]}),
        "write_mjcf": (zw.write_mjcf, {**m, "path": "new.xml"}),
        "write_urdf": (zw.write_urdf, {**m, "path": "new.urdf", "strict": False}),
        "Worlds": (zw.Worlds, {**m, "count": 2, "step": 0.001}),
        "Worlds.step": (zw.Worlds(arm(), 2).step, {"control": [0.0, 0.0], "substeps": 2}),
        "Worlds.reset": (zw.Worlds(arm(), 2).reset, {"mask": [True, False], "q": Q, "v": V}),
        "Worlds.set": (zw.Worlds(arm(), 2).set, {"mask": [1], "q": Q, "v": V, "time": 0.5}),
        "simulate": (_simulated, {**m, "duration": 0.004, "compiled": False}),
        "equations": (zw.equations, {"mechanism": symbolic()}),
        "simulate params": (
            _simulated,
            {"mechanism": symbolic(), "duration": 0.004, "params": {"m": 1.0}, "compiled": False},
        ),
        "simulate adaptive": (
            _simulated,
            {**m, "duration": 0.004, "compiled": False, "integrator": "dop853"},
        ),
        "simulate compiled": (_simulated, {**m, "duration": 0.004}),
        "check_equations": (
            zw.check_equations,
            {"mechanism": symbolic(), "expressions": [sp.Symbol("shoulder_ddot")]},
        ),
        "mechanism_of": (zw.mechanism_of, {"run": run}),
        "open_run": (zw.open_run, {"path": "run.nc"}),
        "save": (zw.save, {"run": run, "path": "new.nc"}),
        "derived_quantities": (zw.derived_quantities, {"run": run, "compiled": False}),
        "plot": (_drawn(zw.plot), {"run": run}),
        "save_html": (zw.save_html, {"run_or_mechanism": run, "path": "x.html"}),
        "view": (_viewed, {"mechanism_or_run": arm(), "browser": False}),
        "plot_ellipsoids": (_drawn(zw.plot_ellipsoids), {**m, "q": Q, **frame}),
        "plot_manipulability": (_drawn(zw.plot_manipulability), {"space": space()}),
    }


def _methods_and_robot() -> Calls:
    m, _, _, frame = _arguments()
    robot = zw.robot
    return {
        "Mechanism.joint": (arm().joint, {"name": "wrist"}),
        "Mechanism.body": (arm().body, {"name": "arm"}),
        "Mechanism.sensor": (arm().replace(sensors=[zw.UserSensor("new")]).sensor, {"name": "new"}),
        "Mechanism.keyframe": (arm().replace(keyframes=[zw.Keyframe("new")]).keyframe, {"name": "new"}),
        "Mechanism.subs": (symbolic().subs, {"values": {"m": 1}}),
        "Mechanism.from_json": (Mechanism.from_json, {"text": "{}"}),
        "robot.away_from_singularities": (robot.away_from_singularities, {**m, **frame}),
        "robot.equilibrium": (robot.equilibrium, m),
        "robot.from_dh": (robot.from_dh, {"d": [0, 1], "a": [1, 1], "alpha": [0, 1]}),
        "robot.workspace": (robot.workspace, {**m, **frame, "samples": 5}),
        "robot.gravity_torques": (robot.gravity_torques, {**m, "q": Q}),
        "robot.holding_torques": (robot.holding_torques, {**m, "q": Q}),
        "robot.joint_torques": (robot.joint_torques, {**m, "q": Q, **frame, "wrench": np.zeros(6)}),
        "robot.manipulability": (robot.manipulability, {**m, "q": Q, **frame, "compiled": False}),
        "robot.payload": (robot.payload, {**m, "q": Q, **frame, "torque_limits": [1, 1]}),
        "robot.solve_ik": (robot.solve_ik, {**m, **frame, "targets": [0.1, 0, -0.6], "restarts": 2}),
    }


def _compiled_methods() -> Calls:
    _, state, tau, frame = _arguments()
    valid: dict[str, dict[str, Any]] = {
        "forward_dynamics": tau,
        "mass_matrix": {"q": Q},
        "frame_pose": {"q": Q, **frame},
        "frame_jacobian": {"q": Q, **frame},
        "integrate_configuration": {**state, "dt": 0.1},
        "sensors": state,
        "body_quantities": state,
        "external_wrenches": state,
        "frame_velocity": {**state, **frame},
        "frame_acceleration": {**state, "a": V, **frame},
        "step": {**state, "control": [0.0]},
        "source": {},
        "count_operations": {},
        "rollout": {"q0": Q, "v0": V, "control": [0.0], "steps": 2},
        "prepare": {"function": "energy"},
    }
    return {f"Fast.{name}": (getattr(fast(), name), arguments) for name, arguments in valid.items()}


def _signed(name: str, call: Any) -> Any:
    public = getattr(zw, name.split()[0], None)
    return public if public is not None else call


class Misuse(NamedTuple):
    """A call with some arguments replaced."""

    title: str
    call: Callable[[], Any]


@cache
def argument_names() -> tuple[tuple[str, str], ...]:
    """Every argument of every public function and class, by name."""
    found = [(name, p) for name in PARTS for p in _parameters(getattr(zw, name))]
    return (
        *found,
        *((name, p) for name, (_, _, signed) in _all_functions().items() for p in _parameters(signed)),
    )


@cache
def _all_functions() -> dict[str, Any]:
    return _functions() | client_calls()


def _parameters(function: Any) -> list[str]:
    found = inspect.signature(function).parameters.values()
    return [
        p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "progress"
    ]


def misuse(number: int) -> Misuse:
    """The misuse of that number."""
    rng = random.Random(number)
    name, parameter = rng.choice(argument_names())
    changed = {parameter: rng.choice(list(HOSTILE))}
    if rng.random() < 0.15:
        changed[rng.choice([p for n, p in argument_names() if n == name])] = rng.choice(list(HOSTILE))
    return made(name, changed)


def made(name: str, changed: dict[str, str]) -> Misuse:
    """The call of a public name with arguments replaced by hostile values of these names."""
    values = {parameter: HOSTILE[kind]() for parameter, kind in changed.items()}
    title = f"{name}({', '.join(f'{p}={k}' for p, k in changed.items())})"
    if name in PARTS:
        given, holder = PARTS[name]
        return Misuse(title, lambda: _use(holder(getattr(zw, name)(**{**given, **values}))))
    call, given, _ = _all_functions()[name]
    return Misuse(title, lambda: call(**{**given, **values}))


def outcome(misuse: Misuse, folder: Path) -> tuple[str, str]:
    """The outcome of a misuse, in a folder with a model and a recording."""
    model, kept = folder / "arm.json", folder / "run.nc"
    if not model.exists():
        model.write_text(arm().to_json())
    if not kept.exists():
        zw.save(recording(), kept)
    if not (table := folder / "motion.csv").exists():
        header = "time,q_shoulder,q_wrist,tau_shoulder,tau_wrist"
        rows = np.column_stack([TIME, motion(), torques()])
        np.savetxt(table, rows, delimiter=",", header=header, comments="")
    return outcome_of(misuse.call)
