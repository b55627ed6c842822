"""The quantities of one world by name, from which observations and rewards are computed in compiled code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from zwang.dynamics.energy import mass_centre, momentum
from zwang.errors import ArgumentError, UnknownNameError
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import Pose
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr
from zwang.scalar import is_scalar, where
from zwang.simulation.applied_forces import activations
from zwang.simulation.controls import control_names


class WorldView:
    """The state of one world and quantities that follow from it, in SI units and radians.

    The values are scalars and arrays of the backend that evaluates the observation: use arithmetic and the
    functions of `zwang.scalar`, and do not branch on values. time [s]. before: the view of the same world at
    the beginning of the present call of `Worlds.step`; its time is the present one.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        state: tuple[Any, Any, Any, Any, Any],
        params: Mapping[str, Any],
        before: WorldView | None = None,
    ):
        self._mechanism, self._params = mechanism, params
        self.time, self._q, self._v, self._z, self._u = state
        self.before = self if before is None else before

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

    @cached_property
    def _kinematics(self) -> Kinematics:
        return Kinematics(self._mechanism.tree, self._q, self._v)

    def _named(self, values: Any, name: str | None, part: str, names: tuple[str, ...]) -> Any:
        if name is None:
            return values
        for joint in self._mechanism.joints:
            if joint.name == name:
                found = values[getattr(joint, part)]
                return found[0] if len(found) == 1 else found
        joints = tuple(joint.name for joint in self._mechanism.joints)
        return _element(values, name, names, "coordinate, speed or joint", also=joints)


def _element(values: Any, name: str | None, names: tuple[str, ...], kind: str, also: Any = ()) -> Any:
    """All values, or the one of this name."""
    if name is None:
        return values
    if name not in names:
        raise UnknownNameError(kind, name, tuple(dict.fromkeys((*also, *names))))
    return values[names.index(name)]


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
