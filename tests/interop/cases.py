"""A mechanism with quaternions and symbols, a state of it, and the functions that other programs call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import sympy as sp

import zwang as zw

PAYLOAD = sp.Symbol("payload", positive=True)


def arm_on_a_ball() -> zw.Mechanism:
    """A ball joint, a hinge with a spring, and a slide with a motor; the last mass is a symbol."""
    return zw.Mechanism(
        "arm on a ball",
        [
            zw.Body("upper", zw.Ball("ball"), mass=2.0, com=(0, 0.02, -0.2), inertia=(0.03, 0.028, 0.004)),
            zw.Body(
                "lower",
                zw.Revolute("elbow", (0, 1, 0)),
                parent="upper",
                position=(0, 0, -0.4),
                mass=1.0,
                com=(0.01, 0, -0.3),
                inertia=(0.012, 0.0125, 0.001),
            ),
            zw.Body(
                "load",
                zw.Prismatic("slide", (0, 0, 1)),
                parent="lower",
                position=(0, 0, -0.5),
                mass=PAYLOAD,
                inertia=(0.002, 0.001, 0.001),
            ),
        ],
        forces=[
            zw.Spring("elbow", 3.0),
            zw.Damper("slide", 0.4),
            zw.Motor("push", "slide"),
            zw.Motor("bend", "elbow"),
        ],
        frames=[zw.Frame("tool", "load", (0.1, 0, -0.1))],
        sensors=[zw.FrameSensor("speed", "linear_acceleration", "tool")],
    )


FUNCTIONS = {
    "forward_dynamics": {},
    "inverse_dynamics": {},
    "mass_matrix": {},
    "bias_forces": {},
    "frame_pose": {"frame": "tool"},
    "frame_jacobian": {"frame": "tool", "axes": "body"},
    "frame_velocity": {"frame": "tool"},
    "frame_acceleration": {"frame": "tool"},
    "energy": {},
    "momentum": {},
    "mass_centre": {},
    "integrate_configuration": {},
    "difference_configuration": {},
    "zwang_of": {},
    "sensors": {},
    "body_quantities": {},
    "step": {"step": 0.01, "integrator": "implicitfast"},
}
"""The functions with the options of each."""

ARRAYS = {
    "frame_pose": ("q",),
    "frame_jacobian": ("q",),
    "frame_velocity": ("q", "v"),
    "frame_acceleration": ("q", "v", "a"),
    "step": ("q", "v", "control"),
    "sensors": ("q", "v", "control"),
}
"""The arguments of functions whose table entry has others."""


def state(mechanism: zw.Mechanism, worlds: tuple[int, ...] = (), seed: int = 0) -> dict[str, np.ndarray]:
    """Every argument by name, with these leading axes."""
    rng = np.random.default_rng(seed)

    def configuration() -> np.ndarray:
        q = rng.normal(size=(*worlds, mechanism.nq))
        for joint in mechanism.joints:
            if joint.kind in ("ball", "free"):
                part = q[..., joint.q.stop - 4 : joint.q.stop]
                part /= np.linalg.norm(part, axis=-1, keepdims=True)
        return q

    v, tau, a = rng.normal(size=(3, *worlds, mechanism.nv))
    control = rng.normal(size=(*worlds, len(mechanism.inputs)))
    values = {"q": configuration(), "q0": configuration(), "q1": configuration(), "v": v, "tau": tau, "a": a}
    return values | {"dt": rng.uniform(0.1, 0.3, worlds), "control": control}


def falling_ball() -> zw.Mechanism:
    """A ball above the floor: its step has contacts."""
    return zw.Mechanism(
        "ball",
        [
            zw.Body("floor", geometry=zw.Plane()),
            zw.Body(
                "ball",
                zw.Free("free"),
                mass=1.0,
                inertia=(0.1,) * 3,
                geometry=zw.Sphere(0.2),
            ),
        ],
    )


def rolling() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A state and a control of the ball, which rolls and slips on the floor."""
    quaternion = np.array([0.8, 0.2, -0.5, 0.1])
    q = np.array([0.1, -0.2, 0.1993, *quaternion / np.linalg.norm(quaternion)])
    return q, np.array([0.5, 0.1, -0.2, 0.3, -0.4, 0.2]), np.array([0.3, 0.0, -0.2, 0.1, 0.05, 0.0])


def pendulum(length: float) -> zw.Mechanism:
    """A pendulum whose centre of mass hangs at this distance from its hinge."""
    rod = zw.Body("rod", zw.Revolute("hinge", (0, 1, 0)), mass=1, com=(0, 0, -length), inertia=(0.01,) * 3)
    return zw.Mechanism("p\u00e9ndulo", [rod])


def swing(length: float, q: float) -> float:
    """The acceleration of the pendulum at rest, - m g l sin q / (I + m l^2)."""
    return -9.81 * length * np.sin(q) / (0.01 + length**2)


def driven_pendulum() -> zw.Mechanism:
    """A pendulum on a ball joint whose slide follows x = A (1 - cos 3 t); the amplitude A is a symbol."""
    t, A = sp.Symbol("t"), sp.Symbol("A", positive=True)
    return zw.Mechanism(
        "driven pendulum",
        [
            zw.Body("slide", zw.Prismatic("x", (1, 0, 0)), mass=1.0),
            zw.Body(
                "rod", zw.Ball("ball"), parent="slide", mass=0.5, com=(0, 0, -0.5), inertia=(0.02, 0.01, 0.03)
            ),
        ],
        constraints=[zw.Holonomic("drive", sp.Symbol("x") - A * (1 - sp.cos(3 * t)))],
    )


def driven(time: float, amplitude: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A state of the driven pendulum at a time, which satisfies the constraint, and generalised forces."""
    x, speed = amplitude * (1 - np.cos(3 * time)), 3 * amplitude * np.sin(3 * time)
    quaternion = np.array([0.8, 0.2, -0.5, 0.1])
    q = np.array([x, *quaternion / np.linalg.norm(quaternion)])
    return q, np.array([speed, 0.4, -0.7, 0.2]), np.array([0.3, 0.1, -0.2, 0.4])


def flat(result: object) -> np.ndarray:
    """All numbers of a result of one world, one after the other."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, tuple | list):
        return np.concatenate([flat(part) for part in result if part is not None])
    return np.ravel(np.asarray(result, dtype=float))


def central_differences(function, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The Jacobian (m, n) of a function of one array, by differences of second order."""
    x = np.asarray(x, dtype=float)
    columns = []
    for k in range(x.size):
        change = np.zeros(x.size)
        change[k] = step
        change = change.reshape(x.shape)
        columns.append((flat(function(x + change)) - flat(function(x - change))) / (2 * step))
    return np.stack(columns, axis=1)


def run_in_a_new_process_without(library: str) -> str:
    """Code that imports the module for a library that is not installed, and prints the error."""
    return (
        f"import sys; sys.modules[{library!r}] = None\n"
        "from zwang.errors import MissingExtraError\n"
        f"try:\n    import zwang.interop.{library}\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )


ROOT = Path(__file__).parents[2]
