"""What is possible but hardly meant: a mechanism's numbers against what real ones have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from zwang.io.contradictions import contradictions
from zwang.mechanism.bodies import Body
from zwang.mechanism.constraints import JointCoupling
from zwang.mechanism.contact_pairs import ContactPair
from zwang.mechanism.geometry import Geometry, Mesh, Plane
from zwang.mechanism.joints import Revolute
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.report import Note
from zwang.mechanism.type_validation import validated_arguments
from zwang.scalar import are_constant

HEAVY = 1e7  # kg
FAR = 20.0  # m, of a centre of mass
LARGE = 100.0  # m, of a mesh
DENSE, LIGHT = 1e6, 1e-3  # kg/m^3
WIDE = 20.0  # m, of a radius of gyration
DEGREES = (4 * math.pi + 0.1, 1000.0)  # a limit between them looks like degrees; beyond it means none
FASTEST_FALL = 100.0  # m/s^2
LONG_STEP = 0.1  # s


@validated_arguments()
def lint(mechanism: Mechanism) -> tuple[Note, ...]:
    """What is implausible in a mechanism, each with the part that it concerns; nothing that is impossible is left.

    Units are what is mistaken most: degrees for radians, millimetres for metres, grams for kilograms.
    """
    found = [note for body in mechanism.bodies for note in (*_of_mass(body), *_of_joints(body))]
    shapes = [(g, f"body {b.name!r}") for b in mechanism.bodies for g in b.geometry]
    shapes += [(g, "the ground") for g in mechanism.geometry]
    found += [note for shape, where in shapes for note in _of_shape(shape, where)]
    found += [*_of_density(mechanism), *_of_couples(mechanism), *_of_settings(mechanism)]
    found += [_note(*said) for said in contradictions(mechanism)]
    found += [*_of_softness(mechanism), *_of_quaternions(mechanism)]
    return tuple(dict.fromkeys(found))


def _note(what: str, where: str) -> Note:
    return Note("implausible", what, where)


def _of_mass(body: Body) -> Iterator[Note]:
    where = f"body {body.name!r}"
    if not are_constant(body.mass, *body.com, *np.ravel(body.inertia)):
        return
    if body.mass > HEAVY:
        yield _note(f"the mass of {where} is {body.mass:.3g} kg", where)
    distance = math.hypot(*body.com)
    if distance > FAR:
        yield _note(
            f"the centre of mass (com) of {where} is {distance:.3g} m from its frame; are these millimetres?",
            where,
        )
    largest = float(np.abs(np.asarray(body.inertia, float)).max())
    if body.mass > 0 and largest > WIDE**2 * body.mass:
        radius = math.sqrt(largest / body.mass)
        yield _note(
            f"the inertia of {where} is that of its mass {radius:.3g} m away; is it in other units than kg m^2?",
            where,
        )


def _of_joints(body: Body) -> Iterator[Note]:
    for joint in body.joints:
        where = f"joint {joint.name!r}"
        limits: Any = getattr(joint, "limits", None)
        if not isinstance(joint, Revolute) or limits is None or not are_constant(*limits):
            continue
        widest = max(abs(limits[0]), abs(limits[1]))
        if DEGREES[0] < widest < DEGREES[1]:
            yield _note(f"the limits {limits} of {where} are radians; degrees seem to be meant", where)


def _of_shape(shape: Geometry, where: str) -> Iterator[Note]:
    if isinstance(shape, Plane):
        return
    if isinstance(shape, Mesh) and _is_mirrored(shape):
        yield _note(
            f"mesh {shape.file or shape.name!r} of {where} is mirrored: its scale is {shape.scale}", where
        )
    size, name = _extent(shape), shape.name or type(shape).__name__.lower()
    if isinstance(shape, Mesh):
        name = f"mesh {shape.file or shape.name!r}"
    if size > LARGE:
        yield _note(
            f"{name} of {where} is {size:.3g} m large; is it in millimetres? set its scale (unit)", where
        )


def _is_mirrored(mesh: Mesh) -> bool:
    """An odd number of its axes is turned round."""
    return are_constant(*mesh.scale) and math.prod(float(np.sign(x)) for x in mesh.scale) < 0


def _of_softness(mechanism: Mechanism) -> Iterator[Note]:
    """Impedances beyond one, which are cut."""
    shapes = [
        (g.surface, f"shape {g.name!r} of body {b.name!r}") for b in mechanism.bodies for g in b.geometry
    ]
    shapes += [(g.surface, f"shape {g.name!r} of the ground") for g in mechanism.geometry]
    shapes += [
        (pair, f"contact pair {pair.name!r}") for pair in mechanism.contacts if isinstance(pair, ContactPair)
    ]
    joints = [(j.joint, f"joint {j.name!r}") for j in mechanism.joints]
    joints += [(t, f"tendon {t.name!r}") for t in mechanism.tendons]
    soft = [
        (getattr(part, name), where)
        for part, where in joints
        for name in ("limit_softness", "friction_softness")
    ]
    soft += [(getattr(c, "softness", None), f"constraint {c.name!r}") for c in mechanism.constraints]
    for part, where in (*shapes, *soft):
        numbers: Any = () if part is None else part.solimp[:2]
        if are_constant(*numbers) and any(x > 1 for x in numbers):
            yield _note(f"solimp of {where} is {part.solimp}; an impedance is between 0 and 1", where)


def _of_quaternions(mechanism: Mechanism) -> Iterator[Note]:
    """States whose attitudes are upright only if their quaternions are read as (x, y, z, w)."""
    states = [(k.q, f"keyframe {k.name!r}") for k in mechanism.keyframes if k.q]
    states += [(mechanism.home, "home")] if mechanism.home else []
    for joint in (j for j in mechanism.joints if j.kind in ("ball", "free")):
        for q, where in states:
            part = q[joint.q.stop - 4 : joint.q.stop]
            if are_constant(*part) and abs(part[3]) > 0.999 * math.hypot(*part) > 0:
                yield _note(
                    f"the quaternion of joint {joint.name!r} in {where} is {tuple(map(float, part))}, a half turn about z; it looks like "
                    "(x, y, z, w), and zwang's order is (w, x, y, z)",
                    where,
                )


def _extent(shape: Geometry) -> float:
    """The largest size of a shape [m]."""
    if isinstance(shape, Mesh):
        points = np.asarray(shape.vertices)
        return float((points.max(axis=0) - points.min(axis=0)).max()) if len(points) else 0.0
    sizes = [getattr(shape, name) for name in shape.sizes]
    return max((float(size) for size in sizes if are_constant(size)), default=0.0)


def _of_density(mechanism: Mechanism) -> Iterator[Note]:
    for body in mechanism.bodies:
        solids = [g for g in body.geometry if g.solid and not isinstance(g, Mesh)]
        sizes = [getattr(g, name) for g in solids for name in g.sizes]
        if len(solids) != len([g for g in body.geometry if not g.visual_only]) or not are_constant(
            body.mass, *sizes
        ):
            continue
        volume = _volume(solids)
        if body.mass == 0 or not 0 < volume < math.inf:
            continue
        density = body.mass / volume
        if not LIGHT < density < DENSE:
            where = f"body {body.name!r}"
            yield _note(
                f"the mass of {where} by its shapes' volume is a density of {density:.3g} kg/m^3", where
            )


def _volume(solids: list[Geometry]) -> float:
    """The volume of shapes [m^3], infinite where it is beyond all numbers."""
    try:
        return sum(float(g.unit_properties()[0]) for g in solids)
    except OverflowError:
        return math.inf


def _of_couples(mechanism: Mechanism) -> Iterator[Note]:
    """Joints that follow each other in a circle."""
    to = {c.joint: c.to for c in mechanism.constraints if isinstance(c, JointCoupling)}
    cleared: set[str | None] = {None}
    for start in to:
        path: list[str] = []
        at: str | None = start
        while at in to and at not in cleared and at not in path:
            path.append(at)
            at = to[at]
        if at in path:
            chain = " -> ".join([*path[path.index(at) :], at])
            yield _note(f"joints are coupled (mimic) in a cycle: {chain}", f"joint {at!r}")
        cleared.update(path)


def _of_settings(mechanism: Mechanism) -> Iterator[Note]:
    g = mechanism.gravity
    if are_constant(*g) and math.hypot(*g) > FASTEST_FALL:
        yield _note(f"gravity is {math.hypot(*g):.4g} m/s^2; is it in millimetres?", "gravity")
    if mechanism.options.timestep > LONG_STEP:
        yield _note(
            f"the timestep is {mechanism.options.timestep:g} s, which is large for any mechanism",
            "option timestep",
        )
