"""Valid calls of the packages above `api`: inverse kinematics, identification, control, learning environments
and other programs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import zwang as zw
import zwang.gym
import zwang.interop.casadi
import zwang.interop.jax
from zwang.mechanism.samples import four_bar

Q, V = [0.1, 0.2], [0.0, 0.0]
TIME = np.linspace(0, 1, 60)


@cache
def plain() -> zw.Mechanism:
    """Two revolute joints with effort limits, whose inputs are the generalised forces."""
    solid = {"mass": 1, "com": (0, 0.05, -0.2), "inertia": (0.1, 0.1, 0.1)}
    ball = (zw.Sphere(0.05),)
    bodies = [
        zw.Body("arm", zw.Revolute("shoulder", axis=(0, 1, 0), limits=(-2, 2)), geometry=ball, **solid),
        zw.Body("hand", zw.Revolute("wrist", axis=(1, 0, 0)), "arm", (0, 0, -0.4), geometry=ball, **solid),
    ]
    floor = (zw.Plane(position=(0, 0, -5)),)
    return zw.Mechanism("plain", bodies, geometry=floor, frames=[zw.Frame("tip", "hand", (0, 0, -0.3))])


@cache
def _compiled() -> Any:
    return zw.compile(plain())


@cache
def motion() -> np.ndarray:
    """Positions (60, 2) over `TIME`."""
    return np.stack([0.3 * np.sin(5 * TIME), 0.2 * np.cos(7 * TIME)], axis=1)


@cache
def torques() -> np.ndarray:
    """The generalised forces (60, 2) of that motion."""
    v = np.stack([1.5 * np.cos(5 * TIME), -1.4 * np.sin(7 * TIME)], axis=1)
    a = np.stack([-7.5 * np.sin(5 * TIME), -9.8 * np.cos(7 * TIME)], axis=1)
    return np.array(
        [zw.inverse_dynamics(plain(), *state) for state in zip(motion(), v, a, strict=True)], float
    )


@cache
def measured() -> Any:
    return zw.identify.measurements(plain(), TIME, motion(), torques())


@cache
def fitted() -> Any:
    return zw.identify.fit(plain(), measured())


@cache
def linear() -> Any:
    return zw.linearize(plain(), Q, V)


def _cost() -> zw.control.Quadratic:
    return zw.control.Quadratic(Q, np.ones(4), np.ones(2), np.ones(4))


def _environment(**arguments: Any) -> None:
    environment = zwang.gym.VectorEnv(**arguments)
    environment.reset(seed=1)
    environment.step(environment.action_space.sample())
    environment.close()


Calls = dict[str, tuple[Callable[..., Any], dict[str, Any], Any]]
"""By name: a callable, valid arguments, and the callable whose signature it has."""


def client_calls() -> Calls:
    """Valid calls of every public function of these packages."""
    calls = _robot() | _identification() | _control()
    return {name: (call, arguments, _signed(name, call)) for name, (call, arguments) in calls.items()}


def _signed(name: str, call: Any) -> Any:
    """The public function or class of a name as "robot.FrameTask"."""
    package, _, member = name.partition(".")
    holder = zwang.gym if package == "gym" else getattr(zw, package, None)
    return getattr(holder, member, call)


def _robot() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    robot, m = zw.robot, {"mechanism": plain()}
    six = robot.from_dh(
        d=[0.1, 0, 0, 0.4, 0, 0.1], a=[0, 0.4, 0, 0, 0, 0], alpha=[1.57, 0, 1.57, -1.57, 1.57, 0]
    )
    tasks = [robot.FrameTask("tip", weight=(1, 1, 1, 0, 0, 0))]
    goals = {"tasks": tasks, "targets": [[0.1, 0, -0.6]], "compiled": False}

    def with_task(task: Any, target: Any) -> Any:
        return robot.differential_ik(plain(), task, [target], Q, 0.1, compiled=False)

    def avoiding(**options: Any) -> Any:
        return robot.differential_ik(**m, **goals, q=Q, step=0.1, avoid=robot.CollisionAvoidance(**options))

    return {
        "robot.all_ik_solutions": (
            robot.all_ik_solutions,
            {"mechanism": six, "frame": six.frames[0].name if six.frames else six.bodies[-1].name,
             "target": (np.eye(3), (0.3, 0.2, 0.3))},
        ),
        "robot.com_jacobian": (robot.com_jacobian, {**m, "q": Q}),
        "robot.differential_ik": (robot.differential_ik, {**m, **goals, "q": Q, "step": 0.1}),
        "robot.whole_body_ik": (robot.whole_body_ik, {**m, **goals, "q0": Q, "iterations": 3}),
        "robot.FrameTask": (
            lambda **k: with_task(robot.FrameTask(**k), [0.1, 0, -0.6]),
            {"frame": "tip", "weight": (1, 1, 1, 0, 0, 0)},
        ),
        "robot.ComTask": (lambda **k: with_task(robot.ComTask(**k), [0.1, 0, -0.6]), {}),
        "robot.PostureTask": (lambda **k: with_task(robot.PostureTask(**k), Q), {}),
        "robot.CollisionAvoidance": (avoiding, {}),
    }  # fmt: skip


def _identification() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    identify, m = zw.identify, {"mechanism": plain()}
    motion_of = {"time": TIME, "q": motion()}
    return {
        "identify.base_parameters": (identify.base_parameters, m),
        "identify.closed_loop_motion": (
            identify.closed_loop_motion,
            {"mechanism": four_bar(), "q": np.full((2, 1), 1.5), "independent": ["drive"]},
        ),
        "identify.excitation": (identify.excitation, {**m, "duration": 1.0, "harmonics": 2, "seconds": 0.01}),
        "identify.fit": (identify.fit, {**m, "samples": measured()}),
        "identify.fit_by_simulation": (
            identify.fit_by_simulation,
            {
                **m,
                **motion_of,
                "control": torques(),
                "deviation": 1e-3,
                "iterations": 50,
                "step": float(TIME[1]),
            },
        ),
        "identify.measurements": (identify.measurements, {**m, **motion_of, "tau": torques()}),
        "identify.parameters": (identify.parameters, m),
        "identify.read_csv": (identify.read_csv, {**m, "path": "motion.csv"}),
        "identify.regressor": (identify.regressor, {**m, "q": Q, "v": V, "a": V, "compiled": False}),
        "identify.report": (identify.report, {"fit": fitted()}),
        "identify.with_fixed_joints": (identify.with_fixed_joints, {**m, "names": ["wrist"]}),
    }


def _control() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    control, fast = zw.control, {"fast": _compiled()}
    start = {"q0": Q, "v0": V, "control": np.zeros((4, 2))}
    view = {"observation": lambda world: world.q("wrist"), "reward": lambda world: world.time}
    return {
        "control.ilqr": (control.ilqr, {**fast, **start, "cost": _cost(), "iterations": 2}),
        "control.Quadratic": (
            lambda **k: control.ilqr(_compiled(), **start, cost=control.Quadratic(**k), iterations=1),
            {"q": Q, "state": np.ones(4), "control": np.ones(2), "final": np.ones(4)},
        ),
        "control.lqr": (control.lqr, {"model": linear(), "Q": np.eye(4), "R": np.eye(2)}),
        "control.predictive_sampling": (
            control.predictive_sampling,
            {**fast, "q": Q, "v": V, "knots": np.zeros((2, 2)), "cost": lambda q, v, u: q[..., 0].sum(-1),
             "steps": 4, "noise": 0.1, "samples": 4},
        ),
        "gym.VectorEnv": (_environment, {"mechanism": plain(), **view, "num_envs": 2}),
        "interop casadi": (zwang.interop.casadi.function, {"method": _compiled().forward_dynamics}),
        "interop jax": (zwang.interop.jax.function, {"method": _compiled().forward_dynamics}),
    }  # fmt: skip


def public_client_names() -> set[str]:
    """The public functions of these packages, and the classes that a user makes."""
    made = {"robot": ("FrameTask", "ComTask", "PostureTask", "CollisionAvoidance"), "control": ("Quadratic",)}
    names = {f"{package}.{name}" for package, classes in made.items() for name in classes} | {"gym.VectorEnv"}
    for package in ("robot", "identify", "control"):
        holder = getattr(zw, package)
        names |= {f"{package}.{name}" for name in holder.__all__ if inspect.isfunction(getattr(holder, name))}
    return names
