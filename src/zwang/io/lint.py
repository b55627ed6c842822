"""Plausibility checks: values of a mechanism that are possible but probably mistakes."""

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

LARGEST_MASS = 1e7  # kg
LARGEST_OFFSET = 20.0  # m, of a centre of mass
LARGEST_SHAPE = 100.0  # m
HIGHEST_DENSITY, LOWEST_DENSITY = 1e6, 1e-3  # kg/m^3
LARGEST_GYRATION = 20.0  # m, radius of gyration
DEGREES = (4 * math.pi + 0.1, 1000.0)  # limits in this range look like degrees; larger ones stand for none
LARGEST_GRAVITY = 100.0  # m/s^2
LARGEST_STEP = 0.1  # s


@validated_arguments()
def lint(mechanism: Mechanism) -> tuple[Note, ...]:
    """Notes on the implausible values of a mechanism, each with the part that it concerns.

    Most of them reveal wrong units: degrees for radians, millimetres for metres, grams for kilograms.
    """
    found = [note for body in mechanism.bodies for note in (*_of_mass(body), *_of_joints(body))]
    shapes = [(g, f"body {b.name!r}") for b in mechanism.bodies for g in b.geometry]
    shapes += [(g, "the ground") for g in mechanism.geometry]
    found += [note for shape, where in shapes for note in _of_shape(shape, where)]
    found += [*_of_density(mechanism), *_of_coupling_cycles(mechanism), *_of_options(mechanism)]
    found += [_note(what, where) for what, where in contradictions(mechanism)]
    found += [*_of_softness(mechanism), *_of_quaternions(mechanism)]
    return tuple(dict.fromkeys(found))


def _note(what: str, where: str) -> Note:
    return Note("implausible", what, where)


def _of_mass(body: Body) -> Iterator[Note]:
    where = f"body {body.name!r}"
    if not are_constant(body.mass, *body.com, *np.ravel(body.inertia)):
        return
    if body.mass > LARGEST_MASS:
        yield _note(f"the mass of {where} is {body.mass:.3g} kg", where)
    distance = math.hypot(*body.com)
    if distance > LARGEST_OFFSET:
        yield _note(
            f"the centre of mass (com) of {where} is {distance:.3g} m from its frame; is the unit "
            "millimetres?",
            where,
        )
    largest = float(np.abs(np.asarray(body.inertia, float)).max())
    if body.mass > 0 and largest > LARGEST_GYRATION**2 * body.mass:
        radius = math.sqrt(largest / body.mass)
        yield _note(
            f"the inertia of {where} corresponds to a radius of gyration of {radius:.3g} m; is its unit kg "
            "m^2?",
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
            yield _note(f"the limits {limits} of {where} are in radians; they look like degrees", where)


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
    if size > LARGEST_SHAPE:
        yield _note(f"{name} of {where} is {size:.3g} m large; is the unit millimetres? Set the scale", where)


def _is_mirrored(mesh: Mesh) -> bool:
    """Whether the scale reverses the orientation: an odd number of its factors is negative."""
    return are_constant(*mesh.scale) and math.prod(float(np.sign(x)) for x in mesh.scale) < 0


def _of_softness(mechanism: Mechanism) -> Iterator[Note]:
    """Impedances above 1, which are clipped."""
    shapes = [
        (g.surface, f"shape {g.name!r} of body {b.name!r}") for b in mechanism.bodies for g in b.geometry
    ]
    shapes += [(g.surface, f"shape {g.name!r} of the ground") for g in mechanism.geometry]
    shapes += [
        (pair, f"contact pair {pair.name!r}") for pair in mechanism.contacts if isinstance(pair, ContactPair)
    ]
    joints = [(j.joint, f"joint {j.name!r}") for j in mechanism.joints]
    joints += [(t, f"tendon {t.name!r}") for t in mechanism.tendons]
    softness = [
        (getattr(part, name), where)
        for part, where in joints
        for name in ("limit_softness", "friction_softness")
    ]
    softness += [(getattr(c, "softness", None), f"constraint {c.name!r}") for c in mechanism.constraints]
    for part, where in (*shapes, *softness):
        if part is None or not are_constant(*part.solimp[:2]):
            continue
        if any(x > 1 for x in part.solimp[:2]):
            yield _note(f"solimp of {where} is {part.solimp}; an impedance must be between 0 and 1", where)


def _of_quaternions(mechanism: Mechanism) -> Iterator[Note]:
    """Quaternions that are near the identity only if they are read as (x, y, z, w)."""
    states = [(k.q, f"keyframe {k.name!r}") for k in mechanism.keyframes if k.q]
    states += [(mechanism.home, "home")] if mechanism.home else []
    for joint in (j for j in mechanism.joints if j.kind in ("ball", "free")):
        for q, where in states:
            part = q[joint.q.stop - 4 : joint.q.stop]
            if are_constant(*part) and abs(part[3]) > 0.999 * math.hypot(*part) > 0:
                yield _note(
                    f"the quaternion of joint {joint.name!r} in {where} is {tuple(map(float, part))}, a "
                    "half turn "
                    "about z; it looks like the order (x, y, z, w), and the order of zwang is (w, x, y, z)",
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
        if not LOWEST_DENSITY < density < HIGHEST_DENSITY:
            where = f"body {body.name!r}"
            yield _note(
                f"the mass of {where} and the volume of its shapes give a density of {density:.3g} kg/m^3",
                where,
            )


def _volume(solids: list[Geometry]) -> float:
    """The sum of the volumes of shapes [m^3]; infinity on overflow."""
    try:
        return sum(float(g.unit_properties()[0]) for g in solids)
    except OverflowError:
        return math.inf


def _of_coupling_cycles(mechanism: Mechanism) -> Iterator[Note]:
    """Joint couplings that form a cycle."""
    to = {c.joint: c.to for c in mechanism.constraints if isinstance(c, JointCoupling)}
    acyclic: set[str | None] = {None}
    for start in to:
        path: list[str] = []
        at: str | None = start
        while at in to and at not in acyclic and at not in path:
            path.append(at)
            at = to[at]
        if at in path:
            chain = " -> ".join([*path[path.index(at) :], at])
            yield _note(f"joint couplings (mimic) form a cycle: {chain}", f"joint {at!r}")
        acyclic.update(path)


def _of_options(mechanism: Mechanism) -> Iterator[Note]:
    g = mechanism.gravity
    if are_constant(*g) and math.hypot(*g) > LARGEST_GRAVITY:
        yield _note(f"gravity is {math.hypot(*g):.4g} m/s^2; is the unit mm/s^2?", "gravity")
    if mechanism.options.timestep > LARGEST_STEP:
        yield _note(
            f"the timestep is {mechanism.options.timestep:g} s, which is too large for most mechanisms",
            "option timestep",
        )
