"""Functions of sensors, and of the velocities, accelerations and wrenches of bodies, for the function
table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.context import StepForm
from zwang.dynamics import body_quantities as quantities
from zwang.dynamics.sensed_motion import link_accelerations, placement_acceleration
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.quantities.sensor_values import SensedState, sensor_slices, sensor_values


class BodyQuantities(NamedTuple):
    """Quantities of every body, with the worlds first and one row for each body, the world's first.

    com: centres of mass (bodies + 1, 3) [m]. subtree_com: those of their subtrees. cinert (bodies + 1, 10),
    cvel (bodies + 1, 6): as in MuJoCo's mjData, see `zwang.dynamics.body_quantities`.
    """

    com: Any
    subtree_com: Any
    cinert: Any
    cvel: Any

    def __repr__(self) -> str:
        *worlds, rows, _ = np.shape(self.com)
        of = f" in worlds of the shape {tuple(worlds)}" if worlds else ""
        return f"<quantities of {rows - 1} bodies and the world{of}: {', '.join(self._fields)}>"


def sensors(
    m: Mechanism, q: Any, v: Any, control: Any, activation: Any, time: Any, step: StepForm | None = None
) -> Any:
    """The values of all sensors, one after the other. step: see `SensedState`."""
    return sensor_values(SensedState(m, time, q, v, activation, control, step))


def by_sensor(m: Mechanism, values: np.ndarray) -> dict[str, np.ndarray]:
    """The values (..., n) of all sensors by name, each (..., size)."""
    return {name: values[..., part] for name, part in sensor_slices(m.sensors).items()}


def frame_velocity(m: Mechanism, q: Any, v: Any, frame: str, axes: str) -> Any:
    """Velocity of a frame, linear before angular."""
    kinematics = Kinematics(m.tree, q, v)
    return _in_axes(kinematics, kinematics.placement_velocity(m.tree.placement(frame)), frame, axes)


def frame_acceleration(m: Mechanism, q: Any, v: Any, a: Any, frame: str, axes: str) -> Any:
    """Acceleration of a frame, linear before angular."""
    kinematics = Kinematics(m.tree, q, v)
    found = placement_acceleration(kinematics, link_accelerations(kinematics, a), m.tree.placement(frame))
    return _in_axes(kinematics, found, frame, axes)


def _in_axes(kinematics: Kinematics, motion: np.ndarray, frame: str, axes: str) -> np.ndarray:
    """The linear and the angular part in the axes of the world or of the frame."""
    if axes == "world":
        return motion
    R = kinematics.frame_pose(frame).R
    return np.concatenate([R.T @ motion[:3], R.T @ motion[3:]])


def body_quantities(m: Mechanism, q: Any, v: Any) -> tuple[Any, ...]:
    """The elements of `BodyQuantities`."""
    kinematics = Kinematics(m.tree, q, v)
    return (
        quantities.mass_centres(m, kinematics),
        quantities.subtree_centres(m, kinematics),
        quantities.body_inertias(m, kinematics),
        quantities.body_velocities(m, kinematics),
    )


def external_wrenches(
    m: Mechanism, q: Any, v: Any, control: Any, activation: Any, time: Any, step: StepForm | None = None
) -> Any:
    """Wrenches of contacts and constraints on every body. step: see `SensedState`."""
    state = SensedState(m, time, q, v, activation, control, step)
    return quantities.body_wrenches(m, state.kinematics, state.external_wrenches)
