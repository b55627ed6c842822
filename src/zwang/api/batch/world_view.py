"""The quantities of one world by name, from which observations and rewards are computed in compiled code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from zwang.api.functions.sensor_functions import BodyQuantities, body_quantities
from zwang.constraint.context import StepForm
from zwang.dynamics.body_quantities import body_wrenches
from zwang.dynamics.energy import mass_centre, momentum
from zwang.errors import ArgumentError, UnknownNameError
from zwang.kinematics.poses import Pose
from zwang.kinematics.tendon_length import spatial_tendons_at, tendon_length
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr
from zwang.scalar import is_scalar, where
from zwang.simulation.applied_forces import activations
from zwang.simulation.controls import control_names
from zwang.simulation.quantities.sensor_values import SensedState, sensor_values


class WorldView:
    """The state of one world and quantities that follow from it, in SI units and radians.

    The values are scalars and arrays of the backend that evaluates the observation: use arithmetic and the
    functions of `zwang.scalar`, and do not branch on values. Each array is a copy, which may be changed in
    place. time [s]. before: the view of the same world at the beginning of the present call of `Worlds.step`;
    its control, parameters and commands are the present ones. is_initial: whether the world has been reset
    and not stepped since; known when the observation is compiled, so that `if` may ask for it.

    Accelerations and forces of constraints and contacts are those of the present state under the present
    control, for which Gauss's problem is solved once more. Those of `last_stage` are known from the step;
    they cost much less.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        state: tuple[Any, Any, Any, Any, Any],
        params: Mapping[str, Any],
        step: StepForm | None = None,
        before: WorldView | None = None,
        last_stage: Callable[[], WorldView] | None = None,
        known_acceleration: Any = None,
        commands: Mapping[str, Any] = MappingProxyType({}),
    ):
        self._mechanism, self._params, self._commands = mechanism, params, commands
        self.time, self._q, self._v, self._z, self._u = state
        self._last_stage = last_stage
        self.is_initial = before is None
        self.before = self if before is None else before
        self._sensed = SensedState(mechanism, *state, step, known_acceleration=known_acceleration)
        # known before an observation reads it in a branch first: what is not read is no part of the program
        self._kinematics = self._sensed.kinematics.with_computed_poses()
        _ = self._kinematics.velocities, spatial_tendons_at(mechanism, self._kinematics)

    @property
    def last_stage(self) -> WorldView:
        """The view of the last state in which a step evaluated forces: the state before the last Euler step,
        or the last stage of a Runge-Kutta method; after a reset the present state.

        MuJoCo's `mj_step` leaves positions of bodies, contacts and forces of this state in mjData, with the
        coordinates and velocities of the next. Its control is that of its step; its parameters, and with
        them poses of mocap bodies, are the present ones. Control and forces of `before.last_stage` are NaN in
        the first step after `Worlds.reset` or `set`. Raises SimulationError for steps that are divided at
        impacts or at stops of sliding.
        """
        return self if self._last_stage is None else self._last_stage()

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism, with the values of its symbols."""
        return self._mechanism

    def q(self, name: str | None = None) -> Any:
        """Generalised coordinates: all (nq,), those of a joint, or the one of this name; a number where there
        is one only. Raises UnknownNameError.
        """
        return self._named(self._q, name, "q", self._mechanism.coordinate_names)

    def v(self, name: str | None = None) -> Any:
        """Generalised velocities: all (nv,), those of a joint, or the one of this name. Raises
        UnknownNameError.
        """
        return self._named(self._v, name, "v", self._mechanism.speed_names)

    def activation(self, name: str | None = None) -> Any:
        """Activations: all (nz,), or that of the actuator of this name. Raises UnknownNameError."""
        return _element(self._z, name, activations(self._mechanism), "actuator with an activation")

    def control(self, name: str | None = None) -> Any:
        """Controls: all (inputs,), or that of the input of this name. Raises UnknownNameError."""
        return _element(self._u, name, control_names(self._mechanism), "input")

    def parameter(self, name: str) -> Any:
        """The value of a symbol. Raises UnknownNameError."""
        if name not in self._params:
            raise UnknownNameError("parameter", name, tuple(self._params))
        return self._params[name]

    def command(self, name: str) -> Any:
        """The value of a command: a number or an array, as `Worlds` was given it. Raises UnknownNameError."""
        if name not in self._commands:
            raise UnknownNameError("command", name, tuple(self._commands))
        return _own(self._commands[name])

    def pose(self, frame: str) -> Pose:
        """Rotation matrix (3, 3) and position (3,) of a body's frame or of a named frame in the world. Raises
        UnknownNameError.
        """
        return self._kinematics.frame_pose(frame)

    def velocity(self, frame: str) -> np.ndarray:
        """Velocity (6,) of a frame's origin [m/s] and angular velocity [rad/s], in world axes. Raises
        UnknownNameError.
        """
        return self._kinematics.placement_velocity(self._mechanism.tree.placement(frame))

    def sensor(self, name: str) -> Any:
        """The value of a sensor: a number, or an array where it has several elements. Raises
        UnknownNameError.
        """
        found = sensor_values(self._sensed, [name])
        return found[0] if len(found) == 1 else found

    def tendon(self, name: str) -> tuple[Any, Any]:
        """Length [m, or the unit of a fixed tendon's joints] and velocity of a tendon. Raises
        UnknownNameError.
        """
        m = self._mechanism
        for tendon in m.tendons:
            if tendon.name == name:
                length, moment = tendon_length(m, tendon, self._kinematics)
                return length, moment @ self._v
        raise UnknownNameError("tendon", name, tuple(tendon.name for tendon in m.tendons))

    def contact_force(self, body: str) -> np.ndarray:
        """The sum (3,) of the contact forces on a body [N], in world axes. Raises UnknownNameError."""
        bodies = tuple(body.name for body in self._mechanism.bodies)
        if body not in (*bodies, "world"):
            raise UnknownNameError("body", body, bodies)
        total: Any = np.zeros(3, int)
        for pair, contact in self._sensed.contacts:
            force = contact.frame.T @ contact.force[:3]
            total = total + ((pair.b.body == body) - (pair.a.body == body)) * force
        return total

    @property
    def acceleration(self) -> np.ndarray:
        """Generalised accelerations (nv,), constraints and contacts included."""
        return _own(self._sensed.acceleration)

    @property
    def actuator_force(self) -> np.ndarray:
        """Generalised force (nv,) of all actuators [N m, N]; MuJoCo's qfrc_actuator."""
        return _own(self._sensed.actuator_force)

    @property
    def constraint_force(self) -> np.ndarray:
        """Generalised force (nv,) of all constraints and contacts [N m, N]; MuJoCo's qfrc_constraint."""
        return _own(self._sensed.constraint_force)

    @property
    def external_wrenches(self) -> np.ndarray:
        """Wrenches of contacts, constraints and tendons on all bodies (bodies + 1, 6); MuJoCo's cfrc_ext, see
        `zw.external_wrenches`.
        """
        return _own(self._external_wrenches)

    @cached_property
    def _external_wrenches(self) -> np.ndarray:
        return body_wrenches(self._mechanism, self._kinematics, self._sensed.external_wrenches)

    @property
    def body_quantities(self) -> BodyQuantities:
        """Centres of mass, inertias and velocities of all bodies, see `zw.body_quantities`."""
        return BodyQuantities(*map(_own, self._body_quantities))

    @cached_property
    def _body_quantities(self) -> BodyQuantities:
        return BodyQuantities(*body_quantities(self._mechanism, self._q, self._v))

    @property
    def com(self) -> np.ndarray:
        """Centre of mass (3,) of all bodies [m]."""
        return mass_centre(self._mechanism.tree, self._q)

    @property
    def momentum(self) -> np.ndarray:
        """Linear momentum [kg m/s] and angular momentum about the centre of mass [kg m^2/s], (6,), in world
        axes.
        """
        return momentum(self._mechanism.tree, self._q, self._v)

    def _named(self, values: Any, name: str | None, part: str, names: tuple[str, ...]) -> Any:
        if name is None:
            return _own(values)
        for joint in self._mechanism.joints:
            if joint.name == name:
                found = values[getattr(joint, part)]
                return found[0] if len(found) == 1 else _own(found)
        joints = tuple(joint.name for joint in self._mechanism.joints)
        return _element(values, name, names, "coordinate, speed or joint", also=joints)


def _element(values: Any, name: str | None, names: tuple[str, ...], kind: str, also: Any = ()) -> Any:
    """All values, or the one of this name."""
    if name is None:
        return _own(values)
    if name not in names:
        raise UnknownNameError(kind, name, tuple(dict.fromkeys((*also, *names))))
    return values[names.index(name)]


def _own(values: Any) -> Any:
    """A copy of an array: an observation may change it in place, and the others read what the state has."""
    return np.array(values) if isinstance(values, np.ndarray) else values


def observed_values(found: Any) -> dict[str, np.ndarray]:
    """The values of an observation by name, as arrays of scalars. Raises ArgumentError for anything else."""
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        raise ArgumentError(
            f"observe returned {short_repr(found)}; it must return a dictionary from names to numbers or "
            "arrays"
        )
    arrays = {name: np.array(value, dtype=object) for name, value in found.items()}
    for name, array in arrays.items():
        if not all(map(is_scalar, array.flat)):
            raise ArgumentError(
                f"observe returned {short_repr(found[name])} for {name!r}; it must be real numbers"
            )
    return {name: _as_numbers(array) for name, array in arrays.items()}


def _as_numbers(array: np.ndarray) -> np.ndarray:
    """The array with 1 and 0 for truth values."""
    numbers = np.empty(array.shape, object)
    for index, x in np.ndenumerate(array):
        numbers[index] = where(x, 1.0, 0.0) if _is_truth_value(x) else x
    return numbers


def _is_truth_value(x: Any) -> bool:
    try:
        return isinstance(x, bool | np.bool_) or x + 0.0 is NotImplemented
    except TypeError:  # traced truth values cannot be added
        return True
