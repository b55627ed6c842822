"""Commands that derive equations, linearise and solve inverse kinematics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter
from rich.markup import escape

import zwang as zw
from zwang.algebra.rotations import from_rpy
from zwang.api.arguments.initial_conditions import initial_state
from zwang.cli.command_options import (
    FILE_OPTIONS,
    Coordinates,
    FileOptions,
    Inputs,
    Keyframe,
    Model,
    Strict,
    Values,
    Velocities,
)
from zwang.cli.console import library_text, out
from zwang.cli.inputs import check_keyframe, model_of, parse_pairs
from zwang.errors import DescriptionError, visible
from zwang.mechanism.numbers import orientation_of
from zwang.simulation.controls import control_names


def equations(
    model: Model,
    *,
    symbolic: Annotated[
        list[str] | None,
        Parameter(
            help="Replace these numbers by symbols: mass, com, inertia, damping, friction or gravity. "
            "May be given several times.",
            negative=(),
        ),
    ] = None,
    method: Annotated[
        Literal["projection", "gauss", "newton_euler", "lagrange"],
        Parameter(help="Method of derivation; all methods give the same equations."),
    ] = "projection",
    format: Annotated[Literal["text", "latex", "html", "sympy"], Parameter(help="Output format.")] = "text",
    speeds: Annotated[
        list[str] | None,
        Parameter(
            help="The name of an independent generalised velocity. May be given several times; "
            "by default zwang chooses them.",
            negative=(),
        ),
    ] = None,
    files: FileOptions = FILE_OPTIONS,
    strict: Strict = True,
) -> None:
    """Print the equations of motion: mass matrix times accelerations = right-hand side."""
    m = model_of(model, files, strict=strict, symbolic=symbolic or ())
    print(visible(zw.equations(m, speeds, method).written(format)))


def linearize(
    model: Model,
    *,
    q0: Coordinates = None,
    v0: Velocities = None,
    keyframe: Keyframe = None,
    control: Inputs = None,
    param: Values = None,
    step: Annotated[
        float | None,
        Parameter(help="Step size of a discrete model [s]; by default the model is continuous.", negative=()),
    ] = None,
    trim: Annotated[
        bool, Parameter(help="Linearise about an equilibrium near the state instead.", negative=())
    ] = False,
    files: FileOptions = FILE_OPTIONS,
    strict: Strict = True,
) -> None:
    """Print the linear model about a state: its matrices A and B, and its poles."""
    m = model_of(model, files, strict=strict, param=param, keyframe=keyframe)
    check_keyframe(keyframe, {"--q0": q0, "--v0": v0})
    q: Any = keyframe or initial_state(m, parse_pairs(q0)).q[0]
    v: Any = None if keyframe else initial_state(m, None, parse_pairs(v0)).v[0]
    inputs: Any = parse_pairs(control) or None
    activation = None
    if trim:
        found = zw.trim(m, q, control=inputs)
        q, v, inputs, activation = found.q, np.zeros(m.nv), found.control, found.activation
        _print_named("equilibrium", m.coordinate_names, found.q)
        _print_named("control", control_names(m), found.control)
    linear = zw.linearize(m, q, v, inputs, activation=activation, step=step)
    for title, matrix, columns in (("A", linear.A, linear.states), ("B", linear.B, linear.inputs)):
        cells = [[title, *columns]]
        cells += [[name, *(f"{x:.6g}" for x in row)] for name, row in zip(linear.states, matrix, strict=True)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:  # no table, which would cut numbers that do not fit into a line
            out.print(escape("  ".join(x.rjust(n) for x, n in zip(line, widths, strict=True))))
    out.print(escape("poles: " + ", ".join(f"{pole:.6g}" for pole in linear.poles)))


def _print_named(title: str, names: Sequence[str], values: np.ndarray) -> None:
    """Print values with their names in a line."""
    named = ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, values, strict=True))
    out.print(escape(f"{title}: {named}"))


def ik(
    model: Model,
    *,
    frame: Annotated[str, Parameter(help="Name of the body or frame to place.")],
    position: Annotated[
        tuple[float, float, float], Parameter(help="Target of the frame's origin, x y z [m].", negative=())
    ],
    quaternion: Annotated[
        tuple[float, float, float, float] | None,
        Parameter(help="Target orientation as a quaternion, w x y z.", negative=()),
    ] = None,
    rpy: Annotated[
        tuple[float, float, float] | None,
        Parameter(help="Target orientation as roll, pitch and yaw [rad], in URDF's convention.", negative=()),
    ] = None,
    q0: Coordinates = None,
    limits: Annotated[
        bool, Parameter(help="Keep within the joint limits; --no-limits also finds configurations beyond.")
    ] = True,
    iterations: Annotated[int | None, Parameter(help="Iteration limit of each start, by default 16.")] = None,
    restarts: Annotated[
        int | None, Parameter(help="Number of further, random starts, by default 200.")
    ] = None,
    param: Values = None,
    files: FileOptions = FILE_OPTIONS,
    strict: Strict = True,
) -> int:
    """Find a configuration that moves a frame to a target pose (inverse kinematics).

    The exit status is 1 if none was found.
    """
    m = model_of(model, files, strict=strict, param=param)
    if quaternion is not None and rpy is not None:
        raise DescriptionError("give the orientation by --quaternion or by --rpy, not by both")
    target: Any = np.array(position)
    if quaternion is not None:
        target = (orientation_of(quaternion, "the orientation of the target"), target)
    elif rpy is not None:
        target = (from_rpy(*rpy), target)
    found = zw.robot.solve_ik(
        m, frame, target, q0=parse_pairs(q0) or None, limits=limits, iterations=iterations, restarts=restarts
    )
    for name, value in zip(m.coordinate_names, np.atleast_1d(found.q), strict=True):
        out.print(f"{escape(name):24} {value: .6f}")
    out.print(library_text(str(found)))
    return 0 if np.all(found.converged) else 1
