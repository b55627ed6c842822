"""A mechanism: bodies joined in a tree, what pushes them and what restricts them. A frozen value, checked when built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from zwang.errors import DescriptionError, ParameterError, UnknownNameError
from zwang.mechanism import consistency, rich_display, serialization
from zwang.mechanism.bodies import Body, Frame
from zwang.mechanism.constraints import EXPRESSION_CONSTRAINTS, JointCoupling
from zwang.mechanism.contact_pairs import ContactExclude, ContactPair
from zwang.mechanism.force_elements import Actuator, Force, Motor, Spring, Wrench
from zwang.mechanism.geometry import Geometry
from zwang.mechanism.joints import Joint
from zwang.mechanism.merged_inertia import bodies_of_impossible_parts
from zwang.mechanism.numbers import Number, Vector3, vector
from zwang.mechanism.options import Keyframe, Options
from zwang.mechanism.report import Report
from zwang.mechanism.tendon_elements import Tendon
from zwang.mechanism.tree import Tree, build_tree
from zwang.mechanism.type_validation import validated
from zwang.scalar import are_constant, is_scalar, reason_not_real


@dataclass(frozen=True)
class JointIndex:
    """Where a joint stands: its body, and its ranges in q and v."""

    name: str
    kind: str
    body: str
    q: slice
    v: slice
    joint: Joint

    @property
    def coordinates(self) -> tuple[str, ...]:
        """A name for each of its coordinates: `elbow`, or `base.qw` where there are several."""
        return tuple(f"{self.name}.{part}" if part else self.name for part in self.joint.coordinates)

    @property
    def speeds(self) -> tuple[str, ...]:
        """A name for each of its speeds."""
        return tuple(f"{self.name}.{part}" if part else self.name for part in self.joint.speeds)

    def __repr__(self) -> str:
        return (
            f"{self.name} ({self.kind} of {self.body}, q[{self.q.start}:{self.q.stop}], "
            f"v[{self.v.start}:{self.v.stop}])"
        )


@validated
@dataclass(frozen=True)
class Mechanism:
    """Bodies, forces, constraints: everything about a mechanism, and nothing that changes.

    bodies: in any order in which they can be named; kept in the order given, which also numbers q and v, but a parent must
    stand before its children (readers sort). gravity [m/s^2]. forces: see `forces`. constraints: see `restrictions`.
    frames: named frames besides the bodies' own. geometry: shapes fixed to the world. home: the configuration that
    `simulate` starts from (nq); by default joints at their reference.
    Raises DescriptionError or UnknownNameError for duplicate or unknown names, cycles, and moving ends without mass.
    """

    name: str = "mechanism"
    bodies: tuple[Body, ...] = ()
    gravity: Vector3 = (0, 0, -9.81)
    forces: tuple[Force, ...] = ()
    constraints: tuple[Any, ...] = ()
    frames: tuple[Frame, ...] = ()
    geometry: tuple[Geometry, ...] = ()
    tendons: tuple[Tendon, ...] = ()
    contacts: tuple[ContactPair | ContactExclude, ...] = ()
    home: tuple[Number, ...] | None = None
    keyframes: tuple[Keyframe, ...] = ()
    options: Options = Options()
    report: Report = Report()

    def __post_init__(self):
        put = object.__setattr__
        where = f"mechanism {self.name!r}"
        if not isinstance(self.name, str):
            raise DescriptionError(f"a mechanism's name is {self.name!r}; it must be a text")
        for name in consistency.HELD:
            put(self, name, consistency.listed(name, getattr(self, name), where))
        consistency.check_settings(self.options, where)
        put(self, "gravity", vector(self.gravity, 3, f"gravity of {where}"))
        _check_tree(self.bodies)
        _check_names(self)
        _check_references(self)
        _check_one_speed(self)
        _check_masses(self)
        _check_parts(self)
        if self.home is not None:
            put(self, "home", vector(self.home, self.nq, f"home of {where}"))
            consistency.check_quaternions(self.home, self.joints, f"home of {where}")
        consistency.check_keyframes(self.keyframes, self.nq, self.nv)

    @cached_property
    def joints(self) -> tuple[JointIndex, ...]:
        """The joints that move, in order, with their ranges in q and v."""
        found, iq, iv = [], 0, 0
        for body in self.bodies:
            for joint in body.joints:
                q, v = slice(iq, iq + joint.nq), slice(iv, iv + joint.nv)
                found.append(JointIndex(joint.name, joint.kind, body.name, q, v, joint))
                iq, iv = q.stop, v.stop
        return tuple(found)

    @cached_property
    def nq(self) -> int:
        """The number of coordinates."""
        return sum(j.joint.nq for j in self.joints)

    @cached_property
    def nv(self) -> int:
        """The number of speeds."""
        return sum(j.joint.nv for j in self.joints)

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        """A name for each coordinate in q."""
        return tuple(name for j in self.joints for name in j.coordinates)

    @cached_property
    def speed_names(self) -> tuple[str, ...]:
        """A name for each speed in v."""
        return tuple(name for j in self.joints for name in j.speeds)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The names that `control` drives: motors, actuators, and inputs of wrenches, in order, each once."""
        names = [f.name for f in self.forces if isinstance(f, Motor | Actuator)]
        names += [f.input for f in self.forces if isinstance(f, Wrench) and f.input is not None]
        return tuple(dict.fromkeys(names))

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The names of the symbolic parameters, sorted; a formula's coordinates, speeds and time are none."""
        formulas = tuple(c for c in self.constraints if isinstance(c, EXPRESSION_CONSTRAINTS))
        others = tuple(c for c in self.constraints if not isinstance(c, EXPRESSION_CONSTRAINTS))
        rest = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "constraints"}
        named = serialization.symbols_in((*rest.values(), *others))
        return tuple(sorted(named | (serialization.symbols_in(formulas) - self.formula_names)))

    @cached_property
    def formula_names(self) -> set[str]:
        """What a constraint's formula may speak of: coordinates, speeds as `NAME_dot`, time t, the force N."""
        return {*self.coordinate_names, *(f"{name}_dot" for name in self.speed_names), "t", "N"}

    @cached_property
    def tree(self) -> Tree:
        """The mechanism as the algorithms want it: one link a move, fixed bodies merged."""
        return build_tree(self.bodies, self.frames, self.gravity)

    @cached_property
    def neutral(self) -> tuple[Number, ...]:
        """The configuration in which every body is where its `position` says."""
        return tuple(x for j in self.joints for x in _neutral(j.joint))

    def joint(self, name: str) -> JointIndex:
        """The joint of that name. Raises UnknownNameError with the names there are."""
        return _find("joint", name, {j.name: j for j in self.joints})

    def body(self, name: str) -> Body:
        """The body of that name. Raises UnknownNameError with the names there are."""
        return _find("body", name, {b.name: b for b in self.bodies})

    def subs(self, values: Mapping[Any, Any]) -> Mechanism:
        """The mechanism with numbers (or expressions) for its symbols, given by symbol or by name.

        Raises ParameterError for a name that is no symbol of the mechanism, or a value that is no real number.
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
            if not is_scalar(value) or isinstance(value, bool | np.timedelta64) or reason_not_real(value):
                raise ParameterError(
                    f"the value of {name!r} is {value!r}; it must be a real number or a symbolic expression"
                )
        return serialization.substitute_symbols(self, named)

    def replace(self, **changes: Any) -> Mechanism:
        """A copy with other fields, checked again."""
        return replace(self, **changes)

    def to_json(self) -> str:
        """The mechanism as JSON text, losslessly; `from_json` gives an equal mechanism."""
        return serialization.to_json(self)

    @staticmethod
    def from_json(text: str) -> Mechanism:
        """The mechanism that `to_json` wrote. Raises LoadError for other text. No code in it is ever run."""
        return serialization.from_json(text, Mechanism)

    def _repr_html_(self) -> str | None:
        """What a notebook shows: a table and a picture."""
        return rich_display.as_html(self)

    def __repr__(self) -> str:
        symbols = f", symbols {', '.join(self.symbols)}" if self.symbols else ""
        return (
            f"<Mechanism {self.name!r}: {len(self.bodies)} bodies, {len(self.joints)} joints, "
            f"nq = {self.nq}, nv = {self.nv}{symbols}>"
        )


def _neutral(joint: Joint) -> tuple[Number, ...]:
    values = {"qw": 1, "qx": 0, "qy": 0, "qz": 0}
    reference = getattr(joint, "reference", 0)
    first = True
    result = []
    for part in joint.coordinates:
        result.append(values.get(part, reference if first else 0))
        first = False
    return tuple(result)


def _find(kind: str, name: Any, table: dict[str, Any]) -> Any:
    if not isinstance(name, str) or name not in table:
        raise UnknownNameError(kind, name, table)
    return table[name]


def _check_tree(bodies: tuple[Body, ...]) -> None:
    """Every parent stands before its children; else it is unknown, or there is a cycle."""
    seen = {"world"}
    names = {body.name for body in bodies}
    for body in bodies:
        if body.parent == body.name:
            raise DescriptionError(f"body {body.name!r} is its own parent")
        if body.parent not in seen:
            if body.parent not in names:
                raise UnknownNameError("body", body.parent, ["world", *names])
            if _leads_to(body, {b.name: b for b in bodies}):
                raise DescriptionError(
                    f"body {body.name!r} is part of a cycle: it is an ancestor of its own parent"
                )
            raise DescriptionError(
                f"body {body.name!r} stands before its parent {body.parent!r}; put the parent first"
            )
        seen.add(body.name)


def _leads_to(body: Body, table: dict[str, Body]) -> bool:
    visited, at = {body.name}, body.parent
    while at in table and at not in visited:
        visited.add(at)
        at = table[at].parent
    return at == body.name


def _check_names(m: Mechanism) -> None:
    _unique("body", ["world", *(b.name for b in m.bodies)])
    _unique("joint", [j.name for j in m.joints])
    _unique("frame", ["world", *(b.name for b in m.bodies), *(f.name for f in m.frames)])
    _unique("constraint", [c.name for c in m.constraints if c.name])
    _unique("tendon", [t.name for t in m.tendons])
    _unique("keyframe", [k.name for k in m.keyframes if k.name])
    _unique("motor or actuator", [f.name for f in m.forces if isinstance(f, Motor | Actuator)])
    shapes = [g.name for b in m.bodies for g in b.geometry] + [g.name for g in m.geometry]
    _unique("shape", [name for name in shapes if name])


def _unique(kind: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            reserved = " (the ground has it)" if kind == "body" and name == "world" else ""
            raise DescriptionError(f"the {kind} name {name!r} is used twice{reserved}; names must be unique")
        seen.add(name)


def _check_references(m: Mechanism) -> None:
    """Every name that a part mentions is there."""
    joints = {j.name: j for j in m.joints}
    bodies = {"world": None, **{b.name: b for b in m.bodies}}
    frames = {**bodies, **{f.name: f for f in m.frames}}
    tendons = {t.name: t for t in m.tendons}
    for frame in m.frames:
        _find("body", frame.body, bodies)
    for tendon in m.tendons:
        for name, _ in tendon.joints:
            _find("joint", name, joints)
        for name in (*tendon.path, *(wrap.side for wrap in tendon.wraps)):
            if name is not None:
                _find("frame", name, frames)
    speeds, constraints = dict.fromkeys(m.speed_names), {c.name: c for c in m.constraints}
    for formula in (c for c in m.constraints if isinstance(c, EXPRESSION_CONSTRAINTS)):
        for name, _ in (*getattr(formula, "coefficients", ()), *getattr(formula, "forces", ())):
            _find("speed", name, speeds)
        if hasattr(formula, "constraint"):
            _find("constraint", formula.constraint, constraints)
    shapes = dict.fromkeys(g.name for g in (*(g for b in m.bodies for g in b.geometry), *m.geometry))
    consistency.check_contacts(m.contacts, bodies, shapes)
    for part in (*m.forces, *m.constraints):
        for kind, name in _mentions(part):
            _find(kind, name, {"joint": joints, "body": bodies, "frame": frames, "tendon": tendons}[kind])


def _check_one_speed(m: Mechanism) -> None:
    """What acts along one coordinate stands on a joint that has one."""
    named: list[tuple[str, str]] = []
    for force in m.forces:
        if isinstance(force, Motor):
            named.append((f"motor {force.name!r}", force.joint))
        elif isinstance(force, Spring) and m.joint(force.joint).kind in ("ball", "free"):
            consistency.check_turning_spring(force)
        elif isinstance(force, Spring):
            named += [("a spring", name) for name in (force.joint, force.relative_to) if name is not None]
    for constraint in m.constraints:
        if isinstance(constraint, JointCoupling):
            what = f"couple {constraint.name!r}"
            named += [(what, name) for name in (constraint.joint, constraint.to) if name is not None]
    named += [(f"tendon {tendon.name!r}", name) for tendon in m.tendons for name, _ in tendon.joints]
    for force in m.forces:
        if isinstance(force, Actuator):
            _check_gear(m, force)
    for what, name in named:
        if m.joint(name).joint.nv != 1:
            raise DescriptionError(
                f"{what} is on joint {name!r}, which is {m.joint(name).kind} and has {m.joint(name).joint.nv} speeds; "
                "it must have one (use an Actuator with one gear a speed, or a Wrench)"
            )


def _check_gear(m: Mechanism, actuator: Actuator) -> None:
    """An actuator has one gear a speed of its joint, one on a tendon, at most six on a frame."""
    size = len(actuator.gear)
    if actuator.frame is not None and actuator.slider is None:
        allowed = range(1, 7)
    else:
        allowed = (1,) if actuator.joint is None else (m.joint(actuator.joint).joint.nv,)
    if size not in allowed:
        raise DescriptionError(
            f"gear of actuator {actuator.name!r} has {size} numbers; it must have {max(allowed)}, one a speed that it drives"
        )


def _mentions(part: Any) -> list[tuple[str, str]]:
    """The names of joints, bodies, frames and tendons that a force or a constraint mentions."""
    found = []
    for field, kind in (
        ("joint", "joint"),
        ("relative_to", "joint"),
        ("tendon", "tendon"),
        ("frame", "frame"),
        ("slider", "frame"),
        ("body", "body"),
        ("on", "body"),
    ):
        name = getattr(part, field, None)
        if name is not None:
            found.append((kind, name))
    if getattr(part, "to", None) is not None:
        found.append(("tendon" if hasattr(part, "tendon") else "joint", part.to))
    for end in ("a", "b"):
        point = getattr(part, end, None)
        if point is not None:
            found.append(("body", point if isinstance(point, str) else point[0]))
    return found


def _check_masses(m: Mechanism) -> None:
    """A joint at the end of a branch must move some mass, or the mass matrix is singular."""
    children: dict[str, list[str]] = {}
    for body in m.bodies:
        children.setdefault(body.parent, []).append(body.name)
    table = {b.name: b for b in m.bodies}
    carried: dict[str, bool] = {}
    for body in reversed(m.bodies):
        own = not are_constant(body.mass) or body.mass > 0 or any(x != 0 for row in body.inertia for x in row)
        carried[body.name] = own or any(carried[c] for c in children.get(body.name, ()))
    for body in m.bodies:
        if not body.joints or carried[body.name]:
            continue
        if all(_has_armature(table[name]) for name in _subtree(body.name, children)):
            continue
        raise DescriptionError(
            f"body {body.name!r} moves by joint {body.joints[0].name!r} but neither it nor what it carries has mass; "
            "give it a mass (or inertia), or make its joint fixed"
        )


def _check_parts(m: Mechanism) -> None:
    """Bodies with an inertia that was not checked are, with those that are fixed to them, a part that can be."""
    unchecked = [body.name for body in m.bodies if body.unchecked_inertia]
    impossible = bodies_of_impossible_parts(m.bodies) if unchecked else frozenset()
    for name in unchecked:
        if name in impossible:
            raise DescriptionError(
                f"body {name!r} has unchecked_inertia, and with the bodies that are fixed to it a negative mass or moment of inertia; "
                "give inertias whose sum a body can have"
            )


def _has_armature(body: Body) -> bool:
    return all(not are_constant(j.armature) or j.armature > 0 for j in body.joints)  # type: ignore[attr-defined]


def _subtree(name: str, children: dict[str, list[str]]) -> list[str]:
    found = [name]
    for at in found:
        found.extend(children.get(at, ()))
    return found
