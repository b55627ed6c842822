"""The mechanism: a tree of bodies with force elements and constraints, an immutable and validated value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from zwang.errors import DescriptionError, ParameterError
from zwang.mechanism import consistency, rich_display, serialization
from zwang.mechanism.bodies import Body, Frame
from zwang.mechanism.constraints import EXPRESSION_CONSTRAINTS
from zwang.mechanism.contact_pairs import ContactExclude, ContactPair
from zwang.mechanism.force_elements import Actuator, Force, Motor, Wrench
from zwang.mechanism.formula_consistency import check_formulas, rates_and_magnitude
from zwang.mechanism.geometry import Geometry
from zwang.mechanism.joint_index import JointIndex, joint_indices
from zwang.mechanism.joints import MovingJoint
from zwang.mechanism.numbers import Number, Numbers, Vector3, vector, with_floats
from zwang.mechanism.options import Keyframe, Options
from zwang.mechanism.report import Report
from zwang.mechanism.sensors import Camera, Sensor
from zwang.mechanism.tendon_elements import Tendon
from zwang.mechanism.tendon_inertia import tendon_inertias
from zwang.mechanism.tendon_paths import TendonPaths, tendon_paths
from zwang.mechanism.tree import Tree, build_tree
from zwang.mechanism.type_validation import validated
from zwang.scalar import is_scalar, is_zero, reason_not_real


@validated
@dataclass(frozen=True)
class Mechanism:
    """The description of a mechanism: bodies, force elements, constraints and all other constants.

    bodies: in an order in which parents stand before their children; it determines the order of q and v.
    gravity: acceleration of gravity, in world axes [m/s^2].
    forces: force elements, see `zwang.mechanism.force_elements`.
    constraints: see `zwang.mechanism.constraints` and `TendonCoupling`.
    inactive_constraints: loops and couplings without effect, see `zw.with_equality_parameters`.
    frames: named frames in addition to the body frames. geometry: shapes fixed to the world.
    tendons, contacts, keyframes, options: see the classes. report: the source and the notes of the reader.
    sensors, cameras: see `zwang.mechanism.sensors`; they do not affect the motion.
    home: default configuration (nq), from which `simulate` starts; by default every joint is at its
    reference.
    Raises DescriptionError or UnknownNameError for duplicate or unknown names, cycles, or joints that move no
    mass.
    """

    name: str = "mechanism"
    bodies: Sequence[Body] = ()
    gravity: Vector3 = (0, 0, -9.81)
    forces: Sequence[Force] = ()
    constraints: Sequence[Any] = ()
    frames: Sequence[Frame] = ()
    geometry: Sequence[Geometry] = ()
    tendons: Sequence[Tendon] = ()
    contacts: Sequence[ContactPair | ContactExclude] = ()
    home: Numbers | None = None
    keyframes: Sequence[Keyframe] = ()
    options: Options = Options()
    report: Report = Report()
    sensors: Sequence[Sensor] = ()
    cameras: Sequence[Camera] = ()
    inactive_constraints: Sequence[Any] = ()

    def __post_init__(self):
        put = object.__setattr__
        where = f"mechanism {self.name!r}"
        if not isinstance(self.name, str):
            raise DescriptionError(f"a mechanism's name is {self.name!r}; it must be a string")
        for name in consistency.PART_LISTS:
            put(self, name, consistency.checked_parts(name, getattr(self, name), where))
        consistency.check_options(self.options, where)
        put(self, "gravity", vector(self.gravity, 3, f"gravity of {where}"))
        consistency.check_mechanism(self)
        if any(isinstance(c, EXPRESSION_CONSTRAINTS) for c in self.constraints):
            check_formulas(self.constraints, self.coordinate_names, self.speed_names, self.symbols)
        if any(not is_zero(tendon.armature) for tendon in self.tendons):
            _ = self.tree  # raises DescriptionError for a tendon with armature on several branches
        if self.home is not None:
            put(self, "home", with_floats(vector(self.home, self.nq, f"home of {where}")))
            consistency.check_quaternions(self.home, self.joints, f"home of {where}")
        consistency.check_keyframes(self.keyframes, self.nq, self.nv)
        consistency.check_mocap(self.keyframes, self.bodies)

    @cached_property
    def joints(self) -> tuple[JointIndex, ...]:
        """The joints that are not fixed, in order, with their slices of q and v."""
        return joint_indices(self.bodies)

    @cached_property
    def nq(self) -> int:
        """Number of coordinates."""
        return sum(j.joint.nq for j in self.joints)

    @cached_property
    def nv(self) -> int:
        """Number of generalised velocities."""
        return sum(j.joint.nv for j in self.joints)

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        """The names of the coordinates in q."""
        return tuple(name for j in self.joints for name in j.coordinates)

    @cached_property
    def speed_names(self) -> tuple[str, ...]:
        """The names of the generalised velocities in v."""
        return tuple(name for j in self.joints for name in j.speeds)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs of `control`: motors, actuators, and inputs of wrenches, in order."""
        names = [f.name for f in self.forces if isinstance(f, Motor | Actuator)]
        names += [f.input for f in self.forces if isinstance(f, Wrench) and f.input is not None]
        return tuple(dict.fromkeys(names))

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The names of the symbolic parameters, sorted.

        In constraints given by expressions, symbols in `formula_names` are no parameters, and in a `NonIdeal`
        neither are those of velocities, NAME_dot, and N.
        """
        expressions = tuple(c for c in self.constraints if isinstance(c, EXPRESSION_CONSTRAINTS))
        others = tuple(c for c in self.constraints if not isinstance(c, EXPRESSION_CONSTRAINTS))
        rest = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "constraints"}
        named = serialization.symbol_names((*rest.values(), *others))
        for c in expressions:
            meant = self.formula_names | rates_and_magnitude(c, self.speed_names)
            named |= serialization.symbol_names(c) - meant
        return tuple(sorted(named))

    @cached_property
    def formula_names(self) -> set[str]:
        """Names with a meaning in the expressions of every constraint: coordinates, and t for the time."""
        return {*self.coordinate_names, "t"}

    @cached_property
    def tree(self) -> Tree:
        """The kinematic tree: one link for each elementary joint, with fixed bodies merged."""
        tree = build_tree(self.bodies, self.frames, self.gravity)
        inertias = tendon_inertias(tree, self.tendons, {j.name: j for j in self.joints})
        return replace(tree, tendon_inertias=inertias) if inertias else tree

    @cached_property
    def tendon_paths(self) -> TendonPaths:
        """The paths of the spatial tendons."""
        return tendon_paths(self.tree, self.tendons)

    @cached_property
    def neutral(self) -> tuple[Number, ...]:
        """The configuration in which every joint is at its reference (quaternions: identity), (nq,)."""
        return with_floats([x for j in self.joints for x in _neutral(j.joint)])

    def joint(self, name: str) -> JointIndex:
        """The joint of that name. Raises UnknownNameError with the valid names."""
        return consistency.find("joint", name, {j.name: j for j in self.joints})

    def sensor(self, name: str) -> Sensor:
        """The sensor of that name. Raises UnknownNameError with the valid names."""
        return consistency.find("sensor", name, {s.name: s for s in self.sensors})

    def camera(self, name: str) -> Camera:
        """The camera of that name. Raises UnknownNameError with the valid names."""
        return consistency.find("camera", name, {c.name: c for c in self.cameras})

    def keyframe(self, name: str) -> Keyframe:
        """The keyframe of that name. Raises UnknownNameError with the valid names."""
        return consistency.find("keyframe", name, {k.name: k for k in self.keyframes})

    def body(self, name: str) -> Body:
        """The body of that name. Raises UnknownNameError with the valid names."""
        return consistency.find("body", name, {b.name: b for b in self.bodies})

    def subs(self, values: Mapping[Any, Any]) -> Mechanism:
        """The mechanism with values (numbers or expressions) for its symbols.

        values: the values by symbol or by name.

        Raises ParameterError for a name that is not a symbol of the mechanism, or a value that is not a real
        number.
        """
        if not isinstance(values, Mapping):
            raise ParameterError(
                f"values for symbols are {values!r}; give a dictionary from symbols to numbers"
            )
        named = {str(key): value for key, value in values.items()}
        unknown = sorted(set(named) - set(self.symbols))
        if unknown:
            raise ParameterError(
                f"mechanism {self.name!r} has no symbol {unknown[0]!r}; its symbols are {list(self.symbols)}"
            )
        for name, value in named.items():
            is_real = is_scalar(value) and not isinstance(value, bool | np.timedelta64)
            reason = reason_not_real(value) if is_real else ""
            if not is_real or reason:
                raise ParameterError(
                    f"the value of {name!r} is {value!r}{reason and f', which {reason}'}; it must be a real "
                    "number or a symbolic expression"
                )
        changed: dict[str, Any] = {}
        for field, chosen in self._symbolic_parts.items():
            new = [serialization.substitute_symbols(part, named) for part in chosen.values()]
            parts = dict(enumerate(_parts(getattr(self, field)))) | dict(zip(chosen, new, strict=True))
            changed[field] = tuple(parts.values()) if isinstance(getattr(self, field), tuple) else parts[0]
        return replace(self, **changed) if changed else self

    @cached_property
    def _symbolic_parts(self) -> dict[str, dict[int, Any]]:
        """The parts that contain symbols, by their field and their number there."""
        found = {
            f.name: {
                k: x for k, x in enumerate(_parts(getattr(self, f.name))) if serialization.symbol_names(x)
            }
            for f in fields(self)
        }
        return {name: parts for name, parts in found.items() if parts}

    def replace(self, **changes: Any) -> Mechanism:
        """A copy with the given fields replaced, validated again."""
        return replace(self, **changes)

    def to_json(self) -> str:
        """The mechanism as JSON text, without loss: `from_json` returns an equal mechanism."""
        return serialization.to_json(self)

    @staticmethod
    def from_json(text: str) -> Mechanism:
        """The mechanism in JSON text that `to_json` wrote, in this version or in version 0.1.

        Raises LoadError for other text. No code in the text is executed.
        """
        return serialization.from_json(text, Mechanism)

    def _repr_html_(self) -> str | None:
        """The mechanism as HTML for notebooks: a table and a picture."""
        return rich_display.as_html(self)

    def __repr__(self) -> str:
        symbols = f", symbols {', '.join(self.symbols)}" if self.symbols else ""
        return (
            f"<Mechanism {self.name!r}: {len(self.bodies)} bodies, {len(self.joints)} joints, "
            f"nq = {self.nq}, nv = {self.nv}{symbols}>"
        )


def _neutral(joint: MovingJoint) -> tuple[Number, ...]:
    """The coordinates of the joint at its reference; the identity for a quaternion."""
    quaternion = {"qw": 1, "qx": 0, "qy": 0, "qz": 0}
    first, *others = joint.coordinates
    return (quaternion.get(first, joint.reference), *(quaternion.get(part, 0) for part in others))


def _parts(value: Any) -> tuple[Any, ...]:
    """The elements of a field, or the field itself if it is no list."""
    return value if isinstance(value, tuple) else (value,)
